#include "server/lifecycle/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "server/core/fake_clock.h"
#include "server/lifecycle/testing.h"

namespace saccade::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kLameDuck = absl::Seconds(5);
constexpr absl::Duration kTimeout = absl::Seconds(25);
// How long late requests are rejected after the last answer.
constexpr absl::Duration kGrace = absl::Milliseconds(500);

class DrainTest : public testing::Test {
 protected:
  DrainTest() {
    readiness_.Attach(&health_);
    readiness_.ModelsReady(true);
  }

  absl::StatusOr<Admission::Ticket> Admit() { return admission_->Admit({.bytes = 1, .client = "c"}); }

  // Drains; `during` is called in each wait for a signal.
  absl::Status Run(const std::function<void()>& during) {
    return Drain({.lame_duck = kLameDuck, .timeout = kTimeout}, readiness_, *admission_, clock_,
                 [&](absl::Duration wait) {
                   waits_.push_back(wait);
                   during();
                   clock_.Advance(wait);
                   return false;
                 });
  }

  FakeClock clock_;
  FakeHealth health_;
  Readiness readiness_;
  std::unique_ptr<Admission> admission_ = Admission::Create({}, &clock_).value();
  // How long Drain() waited for a signal, in order.
  std::vector<absl::Duration> waits_;
};

TEST_F(DrainTest, AnIdleDaemonReportsFirstThenRejectsThenEnds) {
  std::vector<bool> admitted;
  EXPECT_TRUE(Run([&] {
                EXPECT_FALSE(readiness_.ready()) << "load balancers stop before requests are rejected";
                EXPECT_TRUE(readiness_.live());
                admitted.push_back(Admit().ok());
              }).ok());
  EXPECT_THAT(waits_, ElementsAre(kLameDuck, kGrace));
  EXPECT_THAT(admitted, ElementsAre(true, false)) << "accepted in the lame-duck time, rejected after it";
}

TEST_F(DrainTest, LateRequestsAreToldToTryAnotherServer) {
  absl::StatusCode code = absl::StatusCode::kOk;
  EXPECT_TRUE(Run([&] { code = Admit().status().code(); }).ok());
  EXPECT_EQ(code, absl::StatusCode::kUnavailable);
}

TEST_F(DrainTest, AcceptedRequestsAreFinished) {
  std::optional<Admission::Ticket> early = Admit().value();
  std::optional<Admission::Ticket> late;
  std::thread finisher;
  bool finished = false;
  EXPECT_TRUE(Run([&] {
                if (waits_.size() == 1) {
                  late = Admit().value();
                  finisher = std::thread([&] {
                    clock_.AwaitWaiters(1);
                    early.reset();
                    finished = true;
                    late.reset();
                  });
                } else {
                  finisher.join();
                  EXPECT_TRUE(finished) << "the drain continues only when the last request is answered";
                }
              }).ok());
}

TEST_F(DrainTest, ARequestThatTakesTooLongIsAnError) {
  const auto stuck = Admit();
  ASSERT_TRUE(stuck.ok());
  std::thread time([&] {
    clock_.AwaitWaiters(1);
    clock_.Advance(kTimeout - absl::Nanoseconds(1));
    EXPECT_THAT(waits_, ElementsAre(kLameDuck)) << "still waiting";
    clock_.Advance(absl::Nanoseconds(1));
  });
  const absl::Status drained = Run([] {});
  time.join();
  EXPECT_EQ(drained.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(drained.message()),
              HasSubstr("1 accepted requests did not finish within --drain-timeout-seconds"));
  EXPECT_THAT(waits_, ElementsAre(kLameDuck)) << "there is nothing left to wait for";
}

TEST_F(DrainTest, WithoutALameDuckTimeTheOrderIsTheSame) {
  std::vector<absl::Duration> waits;
  std::vector<bool> admitted;
  const auto await_signal = [&](absl::Duration wait) {
    waits.push_back(wait);
    admitted.push_back(Admit().ok());
    return true;
  };
  EXPECT_TRUE(Drain({.lame_duck = absl::ZeroDuration(), .timeout = absl::ZeroDuration()}, readiness_,
                    *admission_, clock_, await_signal)
                  .ok());
  EXPECT_THAT(waits, ElementsAre(absl::ZeroDuration(), kGrace));
  EXPECT_THAT(admitted, ElementsAre(true, false));
}

}  // namespace
}  // namespace saccade::server
