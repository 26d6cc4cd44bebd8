#include "server/attestation/attestation_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "absl/strings/escaping.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The example of RFC 8410.
constexpr char kPem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublic[] = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

bool Verifies(const std::string& public_bytes, const std::string& bytes, const std::string& signature) {
  EVP_PKEY* const key = EVP_PKEY_new_raw_public_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(public_bytes.data()),
      public_bytes.size());
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  const bool verified =
      EVP_DigestVerifyInit(context, nullptr, nullptr, nullptr, key) == 1 &&
      EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()) == 1;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  return verified;
}

TEST(AttestationKeyTest, SignsWhatItsPublicHalfVerifies) {
  const auto key = AttestationKey::Open("a key", kPem);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(absl::BytesToHexString((*key)->public_bytes()), kPublic);
  // openssl pkey -pubout -outform DER | sha256sum
  EXPECT_EQ((*key)->fingerprint(), "a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f");
  auto signature = (*key)->Sign("a statement");
  ASSERT_TRUE(signature.ok());
  // openssl pkeyutl -sign -rawin
  EXPECT_EQ(absl::BytesToHexString(*signature),
            "d3663cce381810e999ac73b98d118fe9ebd02d667da1bae29316b9e6e6fe3b3c"
            "6c6e2d731841195629e802322cc3b600d575a4184774ec9c235973420b0dad08");
  EXPECT_TRUE(Verifies((*key)->public_bytes(), "a statement", *signature));
  EXPECT_FALSE(Verifies((*key)->public_bytes(), "a statemenu", *signature));
  for (const size_t at : {size_t{0}, size_t{31}, size_t{63}}) {
    std::string wrong = *signature;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    EXPECT_FALSE(Verifies((*key)->public_bytes(), "a statement", wrong)) << at;
  }
}

TEST(AttestationKeyTest, WhatIsNoSuchKeyIsRefused) {
  struct Case {
    std::string pem;
    std::string problem;
  };
  const std::string whole = kPem;
  const Case cases[] = {
      {"", "holds no readable private key"},
      {whole.substr(0, 60), "holds no readable private key"},
      {std::string(5000, '\0'), "holds no readable private key"},
      // A public key.
      {"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
       "-----END PUBLIC KEY-----\n",
       "holds no readable private key"},
      // openssl genpkey -algorithm x25519
      {"-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VuBCIEIMAu2ruWMmFk4xxlI2uErA4Vq2IzHF/suva1dgy8i/Zd\n"
       "-----END PRIVATE KEY-----\n",
       "another type than Ed25519"},
      // openssl genpkey -algorithm ed25519 -aes256 -pass pass:secret
      {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
       "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjusuHveqH4cQICCAAw\n"
       "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEA+oFLckBfpSJVq8RAk5szwEQFL9\n"
       "PgNPKXodK7wZKbsg0BkDLheRlADNxvnPJQTviZEA1nvMgUMLXAN8KdJbDJ76O43O\n"
       "ZMiDY4eNNbpZkTUNsxU=\n"
       "-----END ENCRYPTED PRIVATE KEY-----\n",
       "is protected by a passphrase"}};
  for (const Case& one : cases) {
    const auto key = AttestationKey::Open("--attest-key FILE", one.pem);
    ASSERT_FALSE(key.ok()) << one.problem;
    EXPECT_EQ(key.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(key.status().message()), StartsWith("--attest-key FILE "));
    EXPECT_THAT(std::string(key.status().message()), HasSubstr(one.problem));
  }
}

}  // namespace
}  // namespace saccade::server
