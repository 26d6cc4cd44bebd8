// What the daemon's flags permit models to do, and require of their files.
#pragma once

#include <string>

#include "server/repository/checksums.h"

namespace saccade::server {

struct ModelPermissions {
  // --allow-executable-models: run code from the model repository (TorchScript, AOTInductor).
  bool executable = false;
  // --allow-drills: fail, hang or report a lost GPU on purpose when a request's values ask for it.
  bool drills = false;
  // --signing-key and --require-signed.
  ChecksumRules checksums = {};
  // Fingerprint of the key of --attest-key; empty without one.
  std::string attestation_key_sha256 = {};
};

}  // namespace saccade::server
