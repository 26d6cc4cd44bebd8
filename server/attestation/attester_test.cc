#include "server/attestation/attester.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

class FakeKey final : public AttestationKey {
 public:
  absl::StatusOr<std::string> Sign(absl::string_view bytes) const override {
    return "signature of " + std::string(bytes);
  }
  const std::string& public_bytes() const override { return public_; }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  const std::string public_ = "the public key";
  const std::string fingerprint_ = "f00d";
};

class AttesterTest : public ::testing::Test {
 protected:
  AttesterTest() : attester_(std::make_shared<FakeKey>(), "saccaded 1.0", &clock_) {}

  static ServedBy Served() {
    ModelIdentity identity;
    identity.weights_sha256 = "aa";
    identity.configuration_sha256 = "bb";
    identity.instruction_set = "avx2";
    identity.precision = "fp32";
    return {.version = 3, .identity = std::make_shared<const ModelIdentity>(std::move(identity))};
  }
  static AttestedCall Call() {
    return {.protocol = "saccade.v1",
            .model = "detector",
            .request = R"({"encoded":""})",
            .inputs_sha256 = {"cc", "dd"},
            .answer_sha256 = "ee"};
  }

  FakeClock clock_;
  const Attester attester_;
};

TEST_F(AttesterTest, TheStatementIsAsDocumentedByteForByte) {
  clock_.Advance(absl::FromUnixMicros(1'700'000'000'000'042) - clock_.Now());
  const auto attestation = attester_.Attest(Call(), Served());
  ASSERT_TRUE(attestation.ok());
  EXPECT_EQ(attestation->statement,
            R"({"saccade_attestation":1,"key_sha256":"f00d","time":"2023-11-14T22:13:20.000042Z",)"
            R"("model":"detector","version":3,"weights_sha256":"aa","configuration_sha256":"bb",)"
            R"("build":"saccaded 1.0","instruction_set":"avx2","precision":"fp32","protocol":"saccade.v1",)"
            R"("request":{"encoded":""},"inputs_sha256":["cc","dd"],"answer_sha256":"ee"})");
  EXPECT_EQ(attestation->signature, "signature of " + attestation->statement);
  EXPECT_EQ(attestation->public_key, "the public key");
}

TEST_F(AttesterTest, NamesCannotLookLikeOtherMembers) {
  AttestedCall call = Call();
  call.model = "a\",\"version\":9,\"x\":\"\xff\n";
  const auto attestation = attester_.Attest(call, Served());
  ASSERT_TRUE(attestation.ok());
  EXPECT_NE(attestation->statement.find(R"("model":"a\",\"version\":9,\"x\":\"\ufffd\n","version":3,)"),
            std::string::npos)
      << attestation->statement;
}

TEST_F(AttesterTest, AStatementIsBounded) {
  AttestedCall call = Call();
  call.request = "{\"x\":\"" + std::string(kMaxRequestText, 'x') + "\"}";
  call.inputs_sha256.assign(10'000, std::string(64, 'a'));
  const auto attestation = attester_.Attest(call, Served());
  ASSERT_TRUE(attestation.ok());
  EXPECT_LT(attestation->statement.size(), 2000u);
  EXPECT_NE(attestation->statement.find("\"request_sha256\":\""), std::string::npos);
  EXPECT_NE(attestation->statement.find("\"all_inputs_sha256\":\""), std::string::npos);
}

TEST_F(AttesterTest, NothingIsSignedWithoutEveryDigest) {
  AttestedCall call = Call();
  call.answer_sha256 = "";
  EXPECT_EQ(attester_.Attest(call, Served()).status().code(), absl::StatusCode::kInternal);
  call = Call();
  call.inputs_sha256[1] = "";
  EXPECT_EQ(attester_.Attest(call, Served()).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace saccade::server
