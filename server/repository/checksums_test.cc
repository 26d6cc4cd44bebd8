#include "server/repository/checksums.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class ChecksumsTest : public ::testing::Test {
 protected:
  ChecksumsTest() {
    repository_.Write("m/1/model.onnx", "weights");
    repository_.Write("m/labels.txt", "labels");
    repository_.Write("m/.hidden", "left out");
    WriteSums(absl::StrCat(SumOf("weights"), "  ./1/model.onnx\n", SumOf("labels"), " *labels.txt\n"));
  }

  static std::string SumOf(const std::string& text) {
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_Digest(text.data(), text.size(), sum, &size, EVP_sha256(), nullptr);
    std::string hex;
    char digits[3];
    for (unsigned i = 0; i < size; ++i) {
      std::snprintf(digits, sizeof(digits), "%02x", sum[i]);
      hex += digits;
    }
    return hex;
  }

  void WriteSums(const std::string& text) {
    sums_ = text;
    repository_.Write("m/SHA256SUMS", text);
  }

  std::string Outcome(const ChecksumRules& rules = {}) const {
    const absl::Status status = CheckChecksums(repository_.string(), "m", rules);
    return status.ok() ? "OK" : std::string(status.message());
  }

  TestRepository repository_;
  std::string sums_;
};

TEST_F(ChecksumsTest, FilesWithTheirChecksumsPass) { EXPECT_EQ(Outcome(), "OK"); }

TEST_F(ChecksumsTest, AModelWithoutChecksumsPassesUnlessTheyAreRequired) {
  std::filesystem::remove(repository_.path() / "m/SHA256SUMS");
  EXPECT_EQ(Outcome(), "OK");
  EXPECT_THAT(Outcome({.required = true}), HasSubstr("m/SHA256SUMS: is missing, and the daemon runs with"));
}

TEST_F(ChecksumsTest, AMissingFileIsNamed) {
  std::filesystem::remove(repository_.path() / "m/labels.txt");
  EXPECT_THAT(Outcome(), HasSubstr("m/SHA256SUMS: names 'labels.txt', which the model does not have"));
}

TEST_F(ChecksumsTest, AnExtraFileIsNamed) {
  repository_.Write("m/1/extra.bin", "x");
  EXPECT_THAT(Outcome(), HasSubstr("m/1/extra.bin: is not in SHA256SUMS"));
}

TEST_F(ChecksumsTest, AChangedFileIsNamedWithBothSums) {
  repository_.Write("m/1/model.onnx", "weightz");
  EXPECT_THAT(Outcome(), HasSubstr(absl::StrCat("m/1/model.onnx: has the SHA-256 ", SumOf("weightz"),
                                                ", but SHA256SUMS says ", SumOf("weights"))));
}

TEST_F(ChecksumsTest, LinesThatSha256sumDoesNotWriteAreRefused) {
  for (const std::string& text : {std::string("no sums"), SumOf("x"), SumOf("x") + " one", SumOf("x") + "  ",
                                  "\\" + SumOf("x") + "  a\\nb", SumOf("x").substr(1) + "  a"}) {
    WriteSums(text);
    EXPECT_THAT(Outcome(), HasSubstr("line 1 is not 64 hexadecimal digits")) << text;
  }
  WriteSums(absl::StrCat(SumOf("a"), "  a\n", SumOf("b"), "  ./a\n"));
  EXPECT_THAT(Outcome(), HasSubstr("names 'a' twice"));
}

TEST_F(ChecksumsTest, AFileOutsideOfTheModelIsNoFileOfIt) {
  repository_.Write("other/secret", "x");
  WriteSums(absl::StrCat(sums_, SumOf("x"), "  ../other/secret\n"));
  EXPECT_THAT(Outcome(), HasSubstr("names '../other/secret', which the model does not have"));
}

TEST_F(ChecksumsTest, WhatIsLoadedIsWhatWasRead) {
  const std::filesystem::path version = std::filesystem::canonical(repository_.path()) / "m" / "1";
  const auto outcome = [&](const std::string& loaded) {
    return std::string(CheckChecksums(repository_.string(), "m", {}, {loaded, ""}).message());
  };
  EXPECT_EQ(outcome(version / "model.onnx"), "");
  repository_.Write("x/1/model.onnx", "other weights");
  EXPECT_THAT(outcome(repository_.path() / "x" / "1" / "model.onnx"),
              HasSubstr("x/1/model.onnx' is not one of its files any more"));
  // The graph's target has the right checksum, but is not the file that is loaded.
  repository_.Write("x/1/model.onnx", "weights");
  std::filesystem::remove(version / "model.onnx");
  std::filesystem::create_symlink("../../x/1/model.onnx", version / "model.onnx");
  EXPECT_EQ(outcome(version / "model.onnx"), "");
  EXPECT_THAT(outcome(repository_.path() / "x" / "1" / "model.onnx"), HasSubstr("is not one of its files"));
}

TEST_F(ChecksumsTest, ALinkOutOfTheRepositoryIsRefused) {
  std::filesystem::create_symlink("/etc/hostname", repository_.path() / "m/1/link");
  WriteSums(absl::StrCat(sums_, SumOf("x"), "  1/link\n"));
  EXPECT_THAT(Outcome(), HasSubstr("leads out of the model repository"));
}

TEST_F(ChecksumsTest, AFolderThatLinksToItselfEnds) {
  std::filesystem::create_directory_symlink(repository_.path() / "m", repository_.path() / "m/1/again");
  EXPECT_THAT(Outcome(), HasSubstr("levels of folders"));
}

class SignatureTest : public ChecksumsTest {
 protected:
  SignatureTest() : key_(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free) {
    Sign();
    repository_.Write("key.pem", PublicPem(key_.get()));
    rules_.key = *SigningKey::Open((repository_.path() / "key.pem").string());
    rules_.required = true;
  }

  static std::string PublicPem(EVP_PKEY* key) {
    const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
    PEM_write_bio_PUBKEY(bio.get(), key);
    char* text = nullptr;
    const long bytes = BIO_get_mem_data(bio.get(), &text);
    return {text, static_cast<size_t>(bytes)};
  }

  void Sign() {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get());
    std::string signature(64, '\0');
    size_t size = signature.size();
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                   reinterpret_cast<const unsigned char*>(sums_.data()), sums_.size());
    repository_.Write("m/SHA256SUMS.sig", signature);
  }

  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  ChecksumRules rules_;
};

TEST_F(SignatureTest, ASignedModelPasses) { EXPECT_EQ(Outcome(rules_), "OK"); }

TEST_F(SignatureTest, AnUnsignedModelPassesUnlessSignaturesAreRequired) {
  std::filesystem::remove(repository_.path() / "m/SHA256SUMS.sig");
  EXPECT_THAT(Outcome(rules_),
              HasSubstr("m/SHA256SUMS.sig: is missing, and the daemon runs with --require-signed"));
  rules_.required = false;
  EXPECT_EQ(Outcome(rules_), "OK");
}

TEST_F(SignatureTest, ChecksumsThatWereMadeAnewAreNotSigned) {
  repository_.Write("m/labels.txt", "others");
  WriteSums(absl::StrCat(SumOf("weights"), "  1/model.onnx\n", SumOf("others"), "  labels.txt\n"));
  for (const bool required : {true, false}) {
    rules_.required = required;
    EXPECT_THAT(Outcome(rules_), HasSubstr("m/SHA256SUMS.sig: is not the signature of SHA256SUMS"));
  }
  Sign();
  EXPECT_EQ(Outcome(rules_), "OK");
}

TEST_F(SignatureTest, SignaturesOfOtherKeysAndOtherFilesAreRefused) {
  for (const std::string& text :
       {std::string(), std::string(63, 'x'), std::string(64, 'x'), std::string(5000, 'x')}) {
    repository_.Write("m/SHA256SUMS.sig", text);
    EXPECT_THAT(Outcome(rules_), HasSubstr("is not the signature")) << text.size();
  }
}

TEST_F(SignatureTest, OtherFilesAreNoKeys) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> other(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free);
  repository_.Write("ec.pem", PublicPem(other.get()));
  repository_.Write("text.pem", "no key");
  for (const char* name : {"ec.pem", "text.pem", "none.pem"}) {
    const auto key = SigningKey::Open((repository_.path() / name).string());
    EXPECT_THAT(key.status().message(), HasSubstr("is no readable Ed25519 public key")) << name;
  }
}

}  // namespace
}  // namespace saccade::server
