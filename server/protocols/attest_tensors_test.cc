#include "server/protocols/attest_tensors.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "server/attestation/attester.h"
#include "server/core/fake_clock.h"
#include "server/core/served_by.h"

namespace saccade::server {
namespace {

constexpr char kPem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";

class AttestOnTest : public ::testing::Test {
 protected:
  struct Outcome {
    absl::StatusOr<TensorAnswer> answer;
    std::thread::id ran_on;
  };

  // Attests an answer with as many bytes, one of which is the request's. `key` is that of the model.
  Outcome Attested(size_t bytes, WorkPool* pool, const std::string& key = "f00d") {
    const CallScope scope({.attester = &attester_}, start_, "a method");
    CallHead head;
    scope.Describe(head);
    ModelIdentity identity;
    identity.attestation_key_sha256 = key;
    head.served->identity = std::make_shared<const ModelIdentity>(identity);
    const std::string values(bytes, 'x');
    const auto tensor = [&values](size_t size) {
      return Tensor{.name = "t",
                    .type = DataType::kUint8,
                    .shape = {static_cast<int64_t>(size)},
                    .data = BytePieces(std::string_view(values).substr(0, size))};
    };
    const auto asked = std::make_shared<const AskedTensors>(AskedTensors{.inputs = {tensor(1)}});
    std::optional<Outcome> outcome;
    absl::Notification done;
    AttestOn(pool, scope, asked, TensorAnswer{.model = "m", .version = 1, .outputs = {tensor(bytes - 1)}},
             [&](absl::StatusOr<TensorAnswer> answer) {
               outcome = Outcome{std::move(answer), std::this_thread::get_id()};
               done.Notify();
             });
    done.WaitForNotification();
    return *std::move(outcome);
  }

  FakeClock clock_;
  const Attester attester_{*AttestationKey::Open("", kPem), "a build", &clock_};
  const CallStart start_ = {.method = "/a/method",
                            .client = "a client",
                            .metadata = {},
                            .arrival = clock_.Now(),
                            .deadline = absl::InfiniteFuture()};
};

TEST_F(AttestOnTest, LargeTensorsAreDigestedOnThePool) {
  WorkPool pool(1, 8);
  const Outcome small = Attested(kMaxDigestedHere, &pool);
  ASSERT_TRUE(small.answer.ok()) << small.answer.status();
  EXPECT_TRUE(small.answer->attestation);
  EXPECT_EQ(small.ran_on, std::this_thread::get_id());
  const Outcome large = Attested(kMaxDigestedHere + 1, &pool);
  ASSERT_TRUE(large.answer.ok()) << large.answer.status();
  EXPECT_TRUE(large.answer->attestation);
  EXPECT_NE(large.ran_on, std::this_thread::get_id());
}

TEST_F(AttestOnTest, WhatIsNotSignedNeedsNoPool) {
  WorkPool full(0, 0);
  const Outcome outcome = Attested(kMaxDigestedHere + 1, &full, /*key=*/"");
  ASSERT_TRUE(outcome.answer.ok()) << outcome.answer.status();
  EXPECT_FALSE(outcome.answer->attestation);
}

TEST_F(AttestOnTest, WithoutRoomTheCallFails) {
  WorkPool full(0, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(Attested(kMaxDigestedHere + 1, &full).answer.status()));
  EXPECT_TRUE(Attested(kMaxDigestedHere + 1, nullptr).answer.ok());
}

}  // namespace
}  // namespace saccade::server
