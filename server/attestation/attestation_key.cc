#include "server/attestation/attestation_key.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

// What precedes the 32 bytes of an Ed25519 key in DER (RFC 8410).
constexpr char kPublicDerPrefix[] = "302a300506032b6570032100";

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

using Key = std::unique_ptr<EVP_PKEY, Free>;

// Without it, OpenSSL would ask for the passphrase on the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* encrypted) {
  *static_cast<bool*>(encrypted) = true;
  return -1;
}

class Ed25519Key final : public AttestationKey {
 public:
  Ed25519Key(Key key, std::string public_bytes)
      : key_(std::move(key)),
        public_bytes_(std::move(public_bytes)),
        fingerprint_(Sha256Hex(absl::HexStringToBytes(kPublicDerPrefix) + public_bytes_)) {}

  absl::StatusOr<std::string> Sign(absl::string_view bytes) const override {
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    std::string signature(kSignatureBytes, '\0');
    size_t size = signature.size();
    if (context == nullptr || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) != 1 ||
        size != kSignatureBytes) {
      ERR_clear_error();
      return absl::InternalError("the answer could not be signed; memory may be short");
    }
    return signature;
  }

  const std::string& public_bytes() const override { return public_bytes_; }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  const Key key_;
  const std::string public_bytes_;
  const std::string fingerprint_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const AttestationKey>> AttestationKey::Open(absl::string_view subject,
                                                                           absl::string_view pem) {
  constexpr char kExpected[] = "expected a PEM file, as openssl genpkey -algorithm ed25519 writes it";
  const auto refused = [subject](absl::string_view problem) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(subject, " ", problem));
  };
  const std::unique_ptr<BIO, Free> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  bool encrypted = false;
  Key key(bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, &encrypted));
  if (encrypted) {
    return refused(
        "is protected by a passphrase; store the key without one, readable only by the daemon's user");
  }
  if (key == nullptr) return refused(absl::StrCat("holds no readable private key; ", kExpected));
  if (EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519)
    return refused(absl::StrCat("holds a private key of another type than Ed25519; ", kExpected));
  std::string public_bytes(kPublicBytes, '\0');
  size_t size = public_bytes.size();
  if (EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(public_bytes.data()), &size) !=
          1 ||
      size != kPublicBytes)
    return refused("holds a private key whose public half cannot be found; make another one");
  return std::make_shared<const Ed25519Key>(std::move(key), std::move(public_bytes));
}

}  // namespace saccade::server
