#include "server/cache/cache_key.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace saccade::server {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// SHA-256 over fields of which each variable-length one is preceded by its length, so that the input is
// unambiguous.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) {
    // Fetched once, because the lookup takes longer than hashing a small call.
    static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    Check(context_ != nullptr && EVP_DigestInit_ex2(context_.get(), sha256, nullptr) == 1);
  }

  void Add(int64_t number) { AddBytes({reinterpret_cast<const char*>(&number), sizeof(number)}); }
  void Add(std::string_view text) {
    Add(static_cast<int64_t>(text.size()));
    AddBytes(text);
  }
  void Add(const BytePieces& bytes) {
    Add(static_cast<int64_t>(bytes.size()));
    for (const std::string_view piece : bytes.pieces()) AddBytes(piece);
  }

  CacheKey Finish() {
    CacheKey key;
    Check(EVP_DigestFinal_ex(context_.get(), key.data(), nullptr) == 1);
    return key;
  }

 private:
  void AddBytes(std::string_view bytes) {
    Check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  // OpenSSL fails here only if out of memory. Abort: a wrong key could give a client another client's answer.
  static void Check(bool works) {
    if (!works) std::abort();
  }

  const std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace

CacheKey CacheKeyOf(const TensorCall& call) {
  Digest digest;
  digest.Add(static_cast<int64_t>(call.inputs.size()));
  for (const Tensor& input : call.inputs) {
    digest.Add(input.name);
    digest.Add(static_cast<int64_t>(input.type));
    digest.Add(static_cast<int64_t>(input.shape.size()));
    for (const int64_t extent : input.shape) digest.Add(extent);
    digest.Add(input.data);
  }
  return digest.Finish();
}

}  // namespace saccade::server
