// The public key whose signatures SHA256SUMS files must have. A library of its own, because the flags read
// the key before anything of the repository exists.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// An Ed25519 public key. Thread-safe.
class SigningKey {
 public:
  static constexpr size_t kSignatureBytes = 64;

  // Reads a PEM file, as "openssl pkey -pubout" writes it. INVALID_ARGUMENT if it holds no such key.
  static absl::StatusOr<std::shared_ptr<const SigningKey>> Open(const std::string& path);

  virtual ~SigningKey() = default;
  virtual bool Verifies(absl::string_view bytes, absl::string_view signature) const = 0;
};

}  // namespace saccade::server
