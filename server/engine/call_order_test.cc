// Tests of calls whose answers leave in the order of their requests.
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/answer_order.h"
#include "server/engine/testing/calls.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class CallOrderTest : public CallTest {
 protected:
  // The only share of a call that has the next place in the order.
  std::unique_ptr<CallShare> Share(const std::shared_ptr<Outcome>& outcome) {
    auto call = Call({32}, outcome);
    call->KeepOrder(order_.Enter());
    auto ticket = admission_->Admit({.bytes = 1});
    EXPECT_TRUE(ticket.ok());
    call->ticket() = *std::move(ticket);
    return std::move(ShareOut(std::move(call)).at(0));
  }

  const std::unique_ptr<Admission> admission_ = *Admission::Create({}, &clock_);
  AnswerOrder order_;
  const std::shared_ptr<Outcome> first_ = std::make_shared<Outcome>();
  const std::shared_ptr<Outcome> second_ = std::make_shared<Outcome>();
};

TEST_F(CallOrderTest, AnAnswerIsHeldWithItsTicketAndItsWaitCounts) {
  auto slow = Share(first_);
  auto fast = Share(second_);
  Answer(*fast, Pass(1, 0, 10));
  fast.reset();
  EXPECT_EQ(second_->answers, 0);
  EXPECT_EQ(admission_->inflight().requests, 2) << "a drain waits for it";
  clock_.Advance(absl::Milliseconds(40));
  Answer(*slow, Pass(1, 0, 40));
  EXPECT_EQ(first_->answers, 1);
  ASSERT_EQ(second_->answers, 1);
  ASSERT_TRUE(second_->status().ok()) << second_->status();
  EXPECT_EQ((*second_->last)->timings.total, absl::Milliseconds(40));
  EXPECT_EQ((*second_->last)->timings.infer, absl::Milliseconds(10));
  EXPECT_EQ(admission_->inflight().requests, 0);
}

TEST_F(CallOrderTest, AFailedPassKeepsItsPlace) {
  auto slow = Share(first_);
  auto failed = Share(second_);
  failed->FailComputed(absl::InternalError("broken"));
  EXPECT_EQ(second_->answers, 0);
  Answer(*slow, Pass(1, 0, 1));
  EXPECT_EQ(second_->status(), absl::InternalError("broken"));
}

TEST_F(CallOrderTest, ARefusalLeavesAtOnceAndNobodyWaitsForIt) {
  auto slow = Share(first_);
  auto late = Share(second_);
  late->Reject(absl::DeadlineExceededError("late"));
  EXPECT_EQ(second_->answers, 1) << "before the first";
  const auto third = std::make_shared<Outcome>();
  auto fast = Share(third);
  Answer(*fast, Pass(1, 0, 1));
  EXPECT_EQ(third->answers, 0);
  slow->Reject(absl::CancelledError("gone"));
  EXPECT_EQ(third->answers, 1);
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("nv_inference_request_success{model=\"m\",version=\"3\"} 1"));
}

TEST_F(CallOrderTest, ADroppedCallHoldsNobody) {
  auto dropped = Share(first_);
  auto fast = Share(second_);
  Answer(*fast, Pass(1, 0, 1));
  dropped.reset();
  EXPECT_EQ(first_->status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(second_->answers, 1);
}

}  // namespace
}  // namespace saccade::server
