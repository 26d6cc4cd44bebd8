#include "server/engine/call_share.h"

#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/batching/device_model.h"
#include "server/core/inline_passes.h"
#include "server/engine/passes.h"
#include "server/engine/testing/calls.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using CallShareTest = CallTest;

models::Placement InBucket(models::Size size, int64_t depth = 1) { return {size, size, size, depth, depth}; }

TEST_F(CallShareTest, OneShareForEachBucket) {
  const auto call = Call({64, 32, 64, 96, 32, 64}, outcome_);
  const auto shares = ShareOut(call);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[0]->size(), 3);
  EXPECT_EQ(shares[1]->size(), 2);
  EXPECT_EQ(shares[2]->size(), 1);
  EXPECT_EQ(shares[0]->bucket(), BucketId(InBucket({64, 64})));
  EXPECT_NE(shares[0]->bucket(), shares[1]->bucket());
  EXPECT_EQ(&shares[1]->item(1), &call->items()[4]);
  EXPECT_EQ(shares[2]->deadline(), call->request().deadline);
}

TEST_F(CallShareTest, AShareHasAtMostAPassOfItems) {
  const auto call = Call({64, 32, 64, 64, 32, 64, 64}, outcome_);
  const auto shares = ShareOut(call, 2);
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_EQ(shares[0]->size(), 2);
  EXPECT_EQ(shares[1]->size(), 2);
  EXPECT_EQ(shares[2]->size(), 2);
  EXPECT_EQ(shares[3]->size(), 1);
  EXPECT_EQ(&shares[2]->item(1), &call->items()[5]);
  EXPECT_EQ(&shares[3]->item(0), &call->items()[6]);
}

TEST_F(CallShareTest, BucketsOfOneAreaAreTwo) {
  EXPECT_NE(BucketId(InBucket({32, 64})), BucketId(InBucket({64, 32})));
  EXPECT_NE(BucketId(InBucket({32, 64}, 2)), BucketId(InBucket({32, 64}, 3)));
}

TEST_F(CallShareTest, LastShareAnswersInTheRequestsOrder) {
  auto shares = ShareOut(Call({64, 32, 64}, outcome_));
  Answer(*shares[1], Pass(5, 10, 30));
  EXPECT_EQ(outcome_->answers, 0);
  Answer(*shares[0], Pass(2, 20, 70));
  ASSERT_EQ(outcome_->answers, 1);
  ASSERT_TRUE(outcome_->status().ok()) << outcome_->status();
  const Response& response = **outcome_->last;
  EXPECT_THAT(Logits(response), ElementsAre(64, 32, 64));
  EXPECT_EQ(response.batch_size, 5);
  EXPECT_EQ(response.timings.queue, absl::Milliseconds(10));
  EXPECT_EQ(response.timings.infer, absl::Milliseconds(60));
  shares.clear();
  EXPECT_EQ(outcome_->answers, 1);
}

// Notes what the thread that submits a share may compute.
class NotingModel final : public FakeModel {
 public:
  using FakeModel::FakeModel;
  absl::Status Submit(std::unique_ptr<CallShare>& share) override {
    passes.push_back(LimitInlinePasses::Current());
    return FakeModel::Submit(share);
  }
  std::vector<InlinePasses> passes;
};

TEST_F(CallShareTest, NoShareWaitsForThePassOfAnother) {
  NotingModel model(3, &description_, model_metrics_.get());
  SubmitShares(model, ShareOut(Call({64, 32, 96}, outcome_)));
  EXPECT_THAT(model.passes, ElementsAre(InlinePasses::kNone, InlinePasses::kNone, InlinePasses::kAny));
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kUnimplemented) << "the model takes no share";
  EXPECT_EQ(outcome_->answers, 1);
}

TEST_F(CallShareTest, NoAnswerOfABatchWaitsForAPassThatAnotherStarts) {
  std::vector<InlinePasses> passes;
  std::vector<std::shared_ptr<Outcome>> outcomes;
  Shares batch;
  for (int i = 0; i < 3; ++i) {
    outcomes.push_back(std::make_shared<Outcome>());
    outcomes.back()->when_answered = [&] { passes.push_back(LimitInlinePasses::Current()); };
    batch.push_back(std::move(ShareOut(Call({32}, outcomes.back())).at(0)));
  }
  ComputeShares(std::move(batch), &clock_, model_metrics_.get(), [](const Shares& shares) {
    return std::vector<ShareAnswer>(
        shares.size(), std::vector<models::TaskResult>(1, models::Classification{.logits = {1}}));
  });
  EXPECT_THAT(passes, ElementsAre(InlinePasses::kNone, InlinePasses::kNone, InlinePasses::kOwn));
}

// A request of several buckets waits once, as long as any of its parts does.
TEST_F(CallShareTest, ARequestWaitsWhileAShareOfItDoes) {
  std::atomic<int64_t> waiting{0};
  auto shares = ShareOut(Call({64, 32, 64, 96}, outcome_));
  ASSERT_EQ(shares.size(), 3u);
  for (const auto& share : shares) share->BeginWait(&waiting);
  EXPECT_EQ(waiting, 1);
  auto other = ShareOut(Call({64}, std::make_shared<Outcome>()));
  other[0]->BeginWait(&waiting);
  EXPECT_EQ(waiting, 2);
  shares[0]->EndWait();
  shares[0]->EndWait();
  EXPECT_EQ(waiting, 2);
  shares[1]->Reject(absl::DeadlineExceededError("late"));
  EXPECT_EQ(waiting, 2);
  // It was computed, failed, waits for another instance, and is dropped.
  shares[0]->BeginWait(&waiting);
  shares[0].reset();
  EXPECT_EQ(waiting, 2);
  shares[2].reset();
  EXPECT_EQ(waiting, 1);
  other[0]->EndWait();
  EXPECT_EQ(waiting, 0);
  Answer(*other[0], Pass(1, 0, 1));
  EXPECT_EQ(waiting, 0);
}

TEST_F(CallShareTest, MakingTheAnswerIsPartOfItsTime) {
  const auto encode = [this](Response& response) {
    EXPECT_EQ(outcome_->answers, 0);
    EXPECT_THAT(Logits(response), ::testing::ElementsAre(32));
    clock_.Advance(absl::Milliseconds(30));
    return absl::OkStatus();
  };
  const auto shares = ShareOut(Call({32}, outcome_, nullptr, encode));
  const ForwardPass pass = Pass(1, 10, 20);
  // Other shares of its batch were answered first.
  clock_.Advance(absl::Milliseconds(25));
  Answer(*shares[0], pass);
  ASSERT_EQ(outcome_->answers, 1);
  ASSERT_TRUE(outcome_->status().ok()) << outcome_->status();
  const Timings& timings = (*outcome_->last)->timings;
  EXPECT_EQ(timings.queue, absl::Milliseconds(10));
  EXPECT_EQ(timings.infer, absl::Milliseconds(10));
  EXPECT_EQ(timings.encode, absl::Milliseconds(35));
  EXPECT_EQ(timings.total, absl::Milliseconds(55));
  EXPECT_THAT(
      metrics_.Exposition(),
      HasSubstr("saccade_stage_duration_seconds_sum{model=\"m\",stage=\"encode\",task=\"classification\","
                "version=\"3\"} 0.035"));
}

// Answers with detections in a picture of that size.
void AnswerDetections(const std::shared_ptr<PredictCall>& call, int width, int height) {
  call->AddSent({.width = width, .height = height});
  const auto shares = ShareOut(call);
  models::Detections found;
  found.items.push_back({.mask = {1}});
  shares[0]->Answer(std::vector<models::TaskResult>(1, found), {});
}

TEST_F(CallShareTest, MasksOfALargePictureAreDrawnOnThePool) {
  encode_pool_ = *DecodePool::Create({});
  std::thread::id ran_on;
  const auto encode = [&ran_on](Response& response) {
    ran_on = std::this_thread::get_id();
    EXPECT_EQ(response.still_wanted != nullptr, response.sent[0].width == 2000);
    return absl::OkStatus();
  };
  AnswerDetections(Call({32}, outcome_, nullptr, encode), 640, 480);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  AnswerDetections(Call({32}, outcome_, nullptr, encode), 2000, 1000);
  // Waits for what is scheduled.
  encode_pool_.reset();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(outcome_->answers, 2);
  EXPECT_TRUE(outcome_->status().ok()) << outcome_->status();
}

TEST_F(CallShareTest, LargeAttentionMapsAreEncodedOnThePool) {
  encode_pool_ = *DecodePool::Create({});
  std::thread::id ran_on;
  const auto encode = [&ran_on](Response& response) {
    ran_on = std::this_thread::get_id();
    EXPECT_EQ(response.explanation->maps.size(), 1u);
    return absl::OkStatus();
  };
  const auto answer = [&](int64_t width) {
    const auto call = Call({32}, outcome_, nullptr, encode);
    const auto shares = ShareOut(call);
    call->Explain({.layer = "a", .maps = {{"map", 1, width, std::vector<float>(width)}}, .available = 1});
    Answer(*shares[0], Pass(1, 0, 1));
  };
  answer(1000);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  answer(1 << 20);
  // Waits for what is scheduled.
  encode_pool_.reset();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(outcome_->answers, 2);
  EXPECT_TRUE(outcome_->status().ok()) << outcome_->status();
}

// The memory in which masks are drawn is charged, as far as it is more than that of the inputs, which were
// freed.
TEST_F(CallShareTest, MemoryForMasksIsCharged) {
  encode_pool_ = *DecodePool::Create({});
  const auto admission = *Admission::Create({.max_decoded_bytes = 1000}, &clock_);
  std::vector<int64_t> charged;
  const auto encode = [&](Response& response) {
    for (const int64_t bytes : {300, 500, 400}) {
      EXPECT_TRUE(response.take_memory(bytes).ok());
      charged.push_back(admission->inflight().decoded_bytes);
    }
    return response.take_memory(2000);
  };
  auto call = Call({32}, outcome_, nullptr, encode);
  call->ticket() = *admission->Admit({.bytes = 0});
  ASSERT_TRUE(call->AddDecodedBytes(400).ok());
  AnswerDetections(call, 2000, 1000);
  call.reset();
  encode_pool_.reset();
  EXPECT_THAT(charged, ElementsAre(400, 500, 500));
  EXPECT_THAT(std::string(outcome_->status().message()), HasSubstr("--max-decoded-bytes"));
  EXPECT_EQ(admission->inflight().decoded_bytes, 0);
}

TEST_F(CallShareTest, DetectionsThatWaitForOtherSharesAreCharged) {
  const auto admission = *Admission::Create({.max_decoded_bytes = 10'000}, &clock_);
  const auto answer = [&](size_t cells) {
    auto call = Call({64, 32, 96}, outcome_);
    call->ticket() = *admission->Admit({.bytes = 0});
    const auto shares = ShareOut(std::move(call));
    models::Detections found;
    found.items.push_back({.mask = std::vector<float>(cells)});
    shares[0]->Answer(std::vector<models::TaskResult>(1, found), {});
    const int64_t waiting = admission->inflight().decoded_bytes;
    EXPECT_EQ(outcome_->answers, 0);
    for (const size_t share : {1, 2}) shares[share]->Answer(std::vector<models::TaskResult>(1, found), {});
    EXPECT_EQ(outcome_->answers.exchange(0), 1);
    EXPECT_EQ(admission->inflight().decoded_bytes, 0);
    return waiting;
  };
  EXPECT_GE(answer(1000), 4000);
  EXPECT_TRUE(outcome_->status().ok()) << outcome_->status();
  // There is no room for those of the second share.
  EXPECT_GE(answer(2000), 8000);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outcome_->status().message()), HasSubstr("--max-decoded-bytes"));
}

TEST_F(CallShareTest, WhatNobodyWaitsForIsNotEncoded) {
  encode_pool_ = *DecodePool::Create({});
  absl::Notification go;
  ASSERT_TRUE(encode_pool_->Schedule([&go] { go.WaitForNotification(); }).ok());
  const auto cancellation = std::make_shared<Cancellation>();
  const auto encode = [](Response&) {
    ADD_FAILURE() << "it was encoded";
    return absl::OkStatus();
  };
  AnswerDetections(Call({32}, outcome_, cancellation, encode), 2000, 1000);
  EXPECT_EQ(outcome_->answers, 0);
  cancellation->Cancel();
  go.Notify();
  encode_pool_.reset();
  EXPECT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kCancelled);
}

TEST_F(CallShareTest, AnAnswerThatCannotBeMadeFailsItsRequest) {
  const auto encode = [](Response&) { return absl::ResourceExhaustedError("too large"); };
  const auto shares = ShareOut(Call({32}, outcome_, nullptr, encode));
  Answer(*shares[0], Pass(1, 1, 2));
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status(), absl::ResourceExhaustedError("too large"));
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("code=\"RESOURCE_EXHAUSTED\""));
}

// As when there is no memory for the answer. The thread that computes goes on.
TEST_F(CallShareTest, AnExceptionInAnAnswerFailsItsRequestOnly) {
  const auto other = std::make_shared<Outcome>();
  const auto encode = [](Response&) -> absl::Status { throw std::bad_alloc(); };
  Shares batch;
  batch.push_back(std::move(ShareOut(Call({32}, outcome_, nullptr, encode)).at(0)));
  batch.push_back(std::move(ShareOut(Call({32}, other)).at(0)));
  ComputeShares(std::move(batch), &clock_, model_metrics_.get(), [](const Shares& shares) {
    return std::vector<ShareAnswer>(
        shares.size(), std::vector<models::TaskResult>(1, models::Classification{.logits = {1}}));
  });
  EXPECT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(other->status().ok()) << other->status();
}

TEST_F(CallShareTest, FirstFailureWinsAndCancelsTheRest) {
  const auto cancellation = std::make_shared<Cancellation>();
  auto shares = ShareOut(Call({32, 64, 96}, outcome_, cancellation));
  shares[0]->FailComputed(absl::InternalError("first"));
  EXPECT_EQ(outcome_->answers, 0) << "two shares are still out";
  EXPECT_TRUE(shares[1]->cancelled());
  shares[1]->Reject(absl::CancelledError("second"));
  Answer(*shares[2], Pass(1, 1, 2));
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status(), absl::InternalError("first"));
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("reason=\"BACKEND\",version=\"3\"} 1"));
}

TEST_F(CallShareTest, RejectedSharesAreOneShedRequest) {
  auto shares = ShareOut(Call({32, 64}, outcome_));
  for (const auto& share : shares) share->Reject(absl::DeadlineExceededError("late"));
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_shed_total{reason=\"deadline\"} 1"));
}

TEST_F(CallShareTest, FailedPictureFailsItsRequest) {
  auto shares = ShareOut(Call({32, 64}, outcome_));
  shares[0]->Answer(std::vector<models::TaskResult>{models::Failure{"no finite number"}}, Pass(1, 1, 2));
  Answer(*shares[1], Pass(1, 1, 2));
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status(), absl::InternalError("no finite number"));
}

TEST_F(CallShareTest, APictureThatIsWrongIsNoFailureOfTheModel) {
  auto shares = ShareOut(Call({32, 64}, outcome_));
  Answer(*shares[0], Pass(1, 1, 2));
  shares[1]->Answer(std::vector<models::TaskResult>{models::Failure{"not finite", /*of_input=*/true}},
                    Pass(1, 1, 2));
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(outcome_->status().message(), ": picture 1: not finite");
  const std::string text = metrics_.Exposition();
  EXPECT_THAT(text, HasSubstr("code=\"INVALID_ARGUMENT\""));
  for (const char* reason : {"BACKEND", "OTHER", "REJECTED", "CANCELED"})
    EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("reason=\"", reason, "\",version=\"3\"} 1"))));
}

// The members of a batch share a pass, and no more.
TEST_F(CallShareTest, APictureThatIsWrongFailsNoOtherRequestOfItsBatchAndNoInstance) {
  const auto other = std::make_shared<Outcome>();
  Shares batch;
  batch.push_back(std::move(ShareOut(Call({32}, outcome_)).at(0)));
  batch.push_back(std::move(ShareOut(Call({32}, other)).at(0)));
  int passes = 0;
  const PassEnd end = ComputeShares(std::move(batch), &clock_, model_metrics_.get(), [&](const Shares&) {
    ++passes;
    std::vector<ShareAnswer> answers;
    answers.emplace_back(std::vector<models::TaskResult>{models::Failure{"not finite", /*of_input=*/true}});
    answers.emplace_back(std::vector<models::TaskResult>{models::Classification{.logits = {1}}});
    return answers;
  });
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(other->status().ok()) << other->status();
  EXPECT_TRUE(end.whole && end.failed.empty());
  EXPECT_EQ(passes, 1);
}

TEST_F(CallShareTest, DroppedShareFailsItsRequest) {
  auto shares = ShareOut(Call({32, 64}, outcome_));
  Answer(*shares[0], Pass(1, 1, 2));
  shares.clear();
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kInternal);
}

TEST_F(CallShareTest, DroppedCallIsAnswered) {
  Call({32}, outcome_).reset();
  ASSERT_EQ(outcome_->answers, 1);
  EXPECT_EQ(outcome_->status().code(), absl::StatusCode::kInternal);
}

// As when there is no memory for the answer's message. An exception in a destructor would end the process.
TEST_F(CallShareTest, AnExceptionInTheAnswerToADroppedCallEndsNothingElse) {
  outcome_->when_answered = [] { throw std::bad_alloc(); };
  Call({32}, outcome_).reset();
  EXPECT_EQ(outcome_->answers, 1);
  auto shares = ShareOut(Call({32, 64}, outcome_));
  shares.clear();
  EXPECT_EQ(outcome_->answers, 2);
}

TEST_F(CallShareTest, TicketIsHeldUntilTheLastShareIsGone) {
  auto admission = Admission::Create({}, &clock_);
  ASSERT_TRUE(admission.ok());
  auto call = Call({32, 64}, outcome_);
  call->ticket() = *(*admission)->Admit({.bytes = 10});
  auto shares = ShareOut(std::move(call));
  Answer(*shares[0], Pass(1, 1, 2));
  shares[0].reset();
  EXPECT_EQ((*admission)->inflight().requests, 1);
  Answer(*shares[1], Pass(1, 1, 2));
  EXPECT_EQ((*admission)->inflight().requests, 0);
}

// A client that sends its next request with the answer in hand is not rejected because of this one.
TEST_F(CallShareTest, RequestIsGivenBackBeforeItIsAnswered) {
  auto admission = Admission::Create({.max_inflight_requests = 1, .max_decoded_bytes = 10}, &clock_);
  ASSERT_TRUE(admission.ok());
  for (const bool computed : {true, false}) {
    const auto outcome = std::make_shared<Outcome>();
    auto call = Call({32}, outcome);
    call->ticket() = *(*admission)->Admit({.bytes = 1});
    ASSERT_TRUE(call->AddDecodedBytes(10).ok());
    bool admitted = false;
    outcome->when_answered = [&] {
      auto next = (*admission)->Admit({.bytes = 1});
      admitted = next.ok() && next->AddDecodedBytes(10).ok();
    };
    auto shares = ShareOut(std::move(call));
    computed ? Answer(*shares[0], Pass(1, 1, 2)) : shares[0]->Reject(absl::DeadlineExceededError("late"));
    EXPECT_EQ(outcome->answers, 1);
    EXPECT_TRUE(admitted);
  }
}

// Runs calls through a model's queue, with instances that answer, fail and drop, and clients that cancel.
TEST_F(CallShareTest, EveryCallIsAnsweredOnceUnderManyThreads) {
  constexpr int kSubmitters = 3;
  constexpr int kEach = 500;
  constexpr int kInstances = 3;
  DeviceGroup devices({.cores = kInstances}, &clock_);
  auto created = DeviceModel<CallShare>::Create({.max_batch_size = 4, .max_queue_size = 24},
                                                Devices(kInstances), &devices);
  ASSERT_TRUE(created.ok());
  DeviceModel<CallShare>& model = **created;
  std::vector<std::thread> instances;
  for (int instance = 0; instance < kInstances; ++instance) {
    instances.emplace_back([&model, this, instance] {
      std::mt19937 random(static_cast<unsigned>(instance));
      for (auto batch = model.Take(instance); !batch.empty(); batch = model.Take(instance)) {
        for (auto& share : batch) {
          const unsigned fate = random() % 16;
          if (fate == 0) share->FailComputed(absl::InternalError("failed"));
          if (fate > 1) Answer(*share, Pass(1, 1, 2));
          share.reset();
        }
        model.Finished(instance, /*learn=*/true);
      }
    });
  }
  std::vector<std::shared_ptr<Outcome>> outcomes[kSubmitters];
  std::vector<std::thread> submitters;
  for (int s = 0; s < kSubmitters; ++s) {
    submitters.emplace_back([&, s] {
      std::mt19937 random(100 + static_cast<unsigned>(s));
      for (int i = 0; i < kEach; ++i) {
        auto outcome = outcomes[s].emplace_back(std::make_shared<Outcome>());
        const auto cancellation = std::make_shared<Cancellation>();
        std::vector<int64_t> sides(1 + random() % 4);
        for (int64_t& side : sides) side = 32 * (1 + static_cast<int64_t>(random() % 3));
        for (auto& share : ShareOut(Call(sides, outcome, cancellation))) {
          if (absl::Status taken = model.Submit(share); !taken.ok()) share->Reject(taken);
        }
        if (random() % 8 == 0) cancellation->Cancel();
      }
    });
  }
  for (auto& thread : submitters) thread.join();
  model.Close();
  for (auto& thread : instances) thread.join();
  int ok = 0;
  for (const auto& mine : outcomes) {
    for (const auto& outcome : mine) {
      ASSERT_EQ(outcome->answers, 1);
      if (!outcome->status().ok()) continue;
      ++ok;
      for (const float logit : Logits(**outcome->last)) EXPECT_GE(logit, 32) << "an item without its result";
    }
  }
  EXPECT_GT(ok, 0);
  EXPECT_LT(ok, kSubmitters * kEach);
}

}  // namespace
}  // namespace saccade::server
