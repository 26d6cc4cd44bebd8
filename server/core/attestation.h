// The signed statement that an answer carries.
#pragma once

#include <string>

namespace saccade::server {

struct Attestation {
  // JSON on one line (docs/attestation.md).
  std::string statement;
  // The Ed25519 signature of the statement's bytes, and the public key that it is verified with.
  std::string signature;
  std::string public_key;
};

}  // namespace saccade::server
