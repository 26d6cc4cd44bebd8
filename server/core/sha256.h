// SHA-256 of bytes that come in pieces.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Not thread-safe.
class Sha256Digest {
 public:
  Sha256Digest();

  void Add(absl::string_view bytes);
  // 64 hexadecimal digits; empty if memory was short. Call once.
  std::string Hex();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  std::unique_ptr<EVP_MD_CTX, Free> context_;
  bool sound_;
};

// The same for the whole. Empty if memory was short.
std::string Sha256Hex(absl::string_view bytes);
std::string Sha256Hex(const BytePieces& bytes);

}  // namespace saccade::server
