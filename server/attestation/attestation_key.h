// The private key that answers are signed with.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// An Ed25519 key. Thread-safe.
class AttestationKey {
 public:
  static constexpr size_t kSignatureBytes = 64;
  static constexpr size_t kPublicBytes = 32;

  // Reads the text of a PEM file, as "openssl genpkey -algorithm ed25519" writes it. INVALID_ARGUMENT, which
  // begins with `subject`, if it holds no such key.
  static absl::StatusOr<std::shared_ptr<const AttestationKey>> Open(absl::string_view subject,
                                                                    absl::string_view pem);

  virtual ~AttestationKey() = default;

  // kSignatureBytes bytes. INTERNAL if OpenSSL fails, which it does if memory is short.
  virtual absl::StatusOr<std::string> Sign(absl::string_view bytes) const = 0;

  // The public half, kPublicBytes bytes.
  virtual const std::string& public_bytes() const = 0;
  // SHA-256 of the public key in DER, in hexadecimal digits: the key's fingerprint.
  virtual const std::string& fingerprint() const = 0;
};

}  // namespace saccade::server
