#include "server/repository/signing_key.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr std::streamsize kMaxKeyBytes = 16384;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Ed25519Key final : public SigningKey {
 public:
  explicit Ed25519Key(std::unique_ptr<EVP_PKEY, Free> key) : key_(std::move(key)) {}

  bool Verifies(absl::string_view bytes, absl::string_view signature) const override {
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    const auto as_bytes = [](absl::string_view text) {
      return reinterpret_cast<const unsigned char*>(text.data());
    };
    return context != nullptr && signature.size() == kSignatureBytes &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
           EVP_DigestVerify(context.get(), as_bytes(signature), signature.size(), as_bytes(bytes),
                            bytes.size()) == 1;
  }

 private:
  const std::unique_ptr<EVP_PKEY, Free> key_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const SigningKey>> SigningKey::Open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxKeyBytes, '\0');
  file.read(text.data(), kMaxKeyBytes);
  text.resize(static_cast<size_t>(file.gcount()));
  const std::unique_ptr<BIO, Free> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::unique_ptr<EVP_PKEY, Free> key(
      bio == nullptr ? nullptr : PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path,
        "' is no readable Ed25519 public key; expected a PEM file, as openssl pkey -pubout writes it"));
  }
  return std::make_shared<const Ed25519Key>(std::move(key));
}

}  // namespace saccade::server
