#include "server/core/sha256.h"

#include <cstddef>

#include "absl/strings/escaping.h"

namespace saccade::server {

Sha256Digest::Sha256Digest()
    : context_(EVP_MD_CTX_new()),
      sound_(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1) {}

void Sha256Digest::Add(absl::string_view bytes) {
  sound_ = sound_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

std::string Sha256Digest::Hex() {
  std::string sum(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (!sound_ || EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(sum.data()), &size) != 1)
    return "";
  sum.resize(size);
  return absl::BytesToHexString(sum);
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256Digest digest;
  digest.Add(bytes);
  return digest.Hex();
}

std::string Sha256Hex(const BytePieces& bytes) {
  Sha256Digest digest;
  for (const std::string_view piece : bytes.pieces()) digest.Add({piece.data(), piece.size()});
  return digest.Hex();
}

}  // namespace saccade::server
