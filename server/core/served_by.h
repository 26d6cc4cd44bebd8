// Which model computed a call and how long that took, for calls that may be captured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/core/timings.h"

namespace saccade::server {

// What a model's answers depend on besides the request. Two daemons whose identities are equal answer a
// request bit for bit the same.
struct ModelIdentity {
  // SHA-256 of the file of weights, or of the program, in hexadecimal digits; empty for ensembles.
  std::string weights_sha256;
  // "fp32" and so on; empty for programs and ensembles.
  std::string precision;
  // "avx512+bf16+vnni", or "cuda NVIDIA H200 sm_90" for a model on GPUs.
  std::string instruction_set;
  // SHA-256 of the settings that change answers, in hexadecimal digits; empty for ensembles.
  std::string configuration_sha256 = {};
  // Fingerprint of the key that the model's answers are signed with; empty if they are not signed. Answers do
  // not depend on it.
  std::string attestation_key_sha256 = {};
};

// Written by the stage that owns the call, and read when the call ends.
struct ServedBy {
  // 0 until a model was found.
  int64_t version = 0;
  // Null until a model was found.
  std::shared_ptr<const ModelIdentity> identity = nullptr;
  // Zero if nothing was computed.
  Timings timings = {};
};

}  // namespace saccade::server
