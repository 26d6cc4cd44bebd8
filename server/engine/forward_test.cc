#include "server/engine/forward.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "absl/time/clock.h"
#include "models/device/pinned.h"
#include "models/testing/fake_host_allocator.h"
#include "server/engine/call_share.h"
#include "server/engine/passes.h"
#include "server/engine/testing/fake_model.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// One of the bucket's two pixels is padding.
const models::Placement kPlacement = {.sent = {4, 4}, .scaled = {1, 1}, .bucket = {1, 2}};

// Answers every picture with its first value. A first value of 13 throws, 17 throws like a lost GPU, and 7 is
// a failure of that picture. Batches above `room` run out of memory.
class EchoModel final : public models::Model {
 public:
  EchoModel() {
    description_.input.height = 1;
    description_.input.width = 2;
    description_.classes = 1;
  }

  const models::Description& description() const override { return description_; }

  bool sends_pixels() const override { return is_on_gpu; }

  std::vector<models::TaskResult> Run(const models::Batch& batch) const override {
    ++passes;
    if (batch.pixels.size(0) > room) at::empty({int64_t{1} << 56}, at::kByte);
    if (batch.progress) {
      for (size_t i = 0; i < batch.placements.size(); ++i) wanted.push_back(batch.progress(i, 0.5));
    }
    was_pinned = models::IsPinned(batch.pixels);
    last_data = batch.pixels.const_data_ptr<float>();
    last_placements = batch.placements;
    std::vector<models::TaskResult> results;
    for (int64_t i = 0; i < batch.pixels.size(0); ++i) {
      const float value = last_data[i * batch.pixels.stride(0)];
      if (value == 17) throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, 719, "launch failed");
      if (value == 13) throw std::runtime_error("unlucky");
      if (value == 7) {
        results.emplace_back(models::Failure{"picture is all seven"});
      } else {
        results.emplace_back(models::Classification{.logits = {value}});
      }
    }
    return results;
  }

  int64_t room = 1000;
  bool is_on_gpu = false;
  mutable bool was_pinned = false;
  mutable int passes = 0;
  mutable std::vector<bool> wanted;
  mutable const float* last_data = nullptr;
  mutable std::vector<models::Placement> last_placements;

 private:
  models::Description description_;
};

class ForwardTest : public testing::Test {
 protected:
  // A share of a request with one picture per value; the pictures are contiguous.
  std::unique_ptr<CallShare> Share(const std::vector<float>& values,
                                   std::optional<absl::StatusOr<Response>>* outcome,
                                   std::shared_ptr<Cancellation> cancellation = nullptr) {
    auto pixels = std::make_shared<std::vector<float>>();
    for (const float value : values) pixels->insert(pixels->end(), 6, value);
    Request request;
    request.arrival = absl::Now();
    request.cancellation = std::move(cancellation);
    request.progress = [this](double done) { reported_.push_back(done); };
    const std::string_view bytes(reinterpret_cast<const char*>(pixels->data()),
                                 pixels->size() * sizeof(float));
    request.input = TensorInput{.shape = {static_cast<int64_t>(values.size()), 3, 1, 2},
                                .data = BytePieces(bytes, pixels)};
    auto call = std::make_shared<PredictCall>(
        std::move(request), [outcome](absl::StatusOr<Response> answer) { *outcome = std::move(answer); },
        PredictCall::Deps{
            .model = std::make_shared<FakeModel>(1, &model_.description(), model_metrics_.get()),
            .metrics = &metrics_,
            .clock = Clock::Real()});
    for (size_t i = 0; i < values.size(); ++i)
      call->AddItem({kPlacement, absl::MakeConstSpan(*pixels).subspan(6 * i, 6)});
    call->MarkPrepared();
    return std::move(ShareOut(std::move(call)).at(0));
  }

  PassEnd Compute(Shares batch) {
    return ComputeBatch(model_, std::move(batch), Clock::Real(), model_metrics_.get(),
                        [this] { ++advances_; });
  }

  static float Logit(const std::optional<absl::StatusOr<Response>>& outcome, size_t picture) {
    return std::get<models::Classification>(outcome->value().results.at(picture)).logits.at(0);
  }

  int advances_ = 0;
  std::vector<double> reported_;
  Metrics metrics_{"test"};
  std::unique_ptr<ModelMetrics> model_metrics_ = metrics_.ForModel("m", 1, "classification");
  EchoModel model_;
};

TEST_F(ForwardTest, EachRequestGetsItsOwnResults) {
  std::optional<absl::StatusOr<Response>> one, two;
  Shares batch;
  batch.push_back(Share({1}, &one));
  batch.push_back(Share({2, 3}, &two));
  Compute(std::move(batch));
  ASSERT_TRUE(one && one->ok() && two && two->ok());
  EXPECT_EQ(Logit(one, 0), 1);
  EXPECT_EQ(Logit(two, 0), 2);
  EXPECT_EQ(Logit(two, 1), 3);
  EXPECT_EQ((*one)->batch_size, 3);
  EXPECT_EQ(model_.passes, 1);
}

TEST_F(ForwardTest, BatchesForAGpuAreGatheredWhereItCopiesFrom) {
  models::testing::FakeHostAllocator page_locked;
  for (const bool is_on_gpu : {true, false}) {
    model_.is_on_gpu = is_on_gpu;
    std::optional<absl::StatusOr<Response>> one, two;
    Shares batch;
    batch.push_back(Share({1}, &one));
    batch.push_back(Share({2, 3}, &two));
    Compute(std::move(batch));
    EXPECT_EQ(model_.was_pinned, is_on_gpu);
    ASSERT_TRUE(one && one->ok() && two && two->ok());
    EXPECT_EQ(Logit(one, 0), 1);
    EXPECT_EQ(Logit(two, 0), 2);
    EXPECT_EQ(Logit(two, 1), 3);
  }
  EXPECT_EQ(page_locked.allocated, 1);
}

TEST_F(ForwardTest, ThrowingMemberFailsAlone) {
  std::optional<absl::StatusOr<Response>> good, bad;
  Shares batch;
  batch.push_back(Share({13}, &bad));
  batch.push_back(Share({4}, &good));
  const PassEnd end = Compute(std::move(batch));
  EXPECT_TRUE(end.part && !end.whole && end.failed.empty());
  ASSERT_TRUE(good && good->ok());
  EXPECT_EQ(Logit(good, 0), 4);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("unlucky"));
}

// The input of each may be bad, but so may the instance: another one has to try.
TEST_F(ForwardTest, IfNothingCanBeComputedTheSharesAreLeftForAnotherInstance) {
  std::optional<absl::StatusOr<Response>> one, two;
  Shares batch;
  batch.push_back(Share({13}, &one));
  batch.push_back(Share({13}, &two));
  PassEnd end = Compute(std::move(batch));
  EXPECT_FALSE(end.whole || end.part);
  ASSERT_EQ(end.failed.size(), 2u);
  EXPECT_FALSE(one || two);
  EXPECT_THAT(std::string(end.failed[0].why.message()), HasSubstr("unlucky"));
  // No instance had time for it.
  end.failed[0].share->NoteFailure(end.failed[0].why);
  end.failed[0].share->Reject(absl::DeadlineExceededError("no time"));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->status(), end.failed[0].why);
  end.failed[1].share->NoteFailure(end.failed[1].why);
  end.failed[1].share->Reject(absl::CancelledError("the client left"));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ForwardTest, ABatchWithoutMemoryIsHalved) {
  std::array<std::optional<absl::StatusOr<Response>>, 5> outcomes;
  Shares batch;
  for (size_t i = 0; i < 5; ++i) batch.push_back(Share({static_cast<float>(i + 1)}, &outcomes[i]));
  model_.room = 2;
  const PassEnd end = Compute(std::move(batch));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(Logit(outcomes[i], 0), i + 1);
  // Passes over 5, 3, 2, 1 and 2 pictures; those over 5 and 3 run out of memory.
  EXPECT_EQ(model_.passes, 5);
  EXPECT_EQ(end.no_room_for, 3);
  EXPECT_FALSE(end.whole);
}

TEST_F(ForwardTest, WhatAloneIsTooLargeIsToldSo) {
  std::optional<absl::StatusOr<Response>> good, bad;
  Shares batch;
  batch.push_back(Share({1, 2, 3}, &bad));
  batch.push_back(Share({4}, &good));
  model_.room = 2;
  Compute(std::move(batch));
  ASSERT_TRUE(bad && good && good->ok());
  EXPECT_EQ(bad->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("send fewer"));
}

TEST_F(ForwardTest, NothingIsTriedOnALostDevice) {
  std::optional<absl::StatusOr<Response>> one, two;
  Shares batch;
  batch.push_back(Share({4}, &one));
  batch.push_back(Share({17}, &two));
  PassEnd end = Compute(std::move(batch));
  EXPECT_TRUE(end.device_lost);
  EXPECT_EQ(model_.passes, 1);
  ASSERT_EQ(end.failed.size(), 2u) << "another device may compute them";
  for (auto& [share, why] : end.failed) share->FailComputed(why);
  for (const auto* outcome : {&one, &two}) {
    ASSERT_TRUE(*outcome);
    EXPECT_EQ((*outcome)->status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string((*outcome)->status().message()), HasSubstr("another replica"));
  }
}

TEST_F(ForwardTest, FailedPictureFailsItsRequestAlone) {
  std::optional<absl::StatusOr<Response>> good, bad;
  Shares batch;
  batch.push_back(Share({1, 7}, &bad));
  batch.push_back(Share({4}, &good));
  Compute(std::move(batch));
  ASSERT_TRUE(good && good->ok() && bad);
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("all seven"));
  EXPECT_EQ(model_.passes, 1);
}

TEST_F(ForwardTest, LoneRequestIsNotCopied) {
  std::optional<absl::StatusOr<Response>> outcome;
  Shares batch;
  batch.push_back(Share({5, 6}, &outcome));
  const void* const pixels = batch[0]->item(0).pixels.pieces()[0].data();
  Compute(std::move(batch));
  EXPECT_EQ(model_.last_data, pixels);
  EXPECT_EQ(Logit(outcome, 1), 6);
}

TEST_F(ForwardTest, ALoneRequestForAGpuIsCopiedToWhereItCopiesFrom) {
  models::testing::FakeHostAllocator page_locked;
  model_.is_on_gpu = true;
  std::optional<absl::StatusOr<Response>> outcome;
  Shares batch;
  batch.push_back(Share({5, 6}, &outcome));
  Compute(std::move(batch));
  EXPECT_TRUE(model_.was_pinned);
  EXPECT_EQ(Logit(outcome, 0), 5);
  EXPECT_EQ(Logit(outcome, 1), 6);
}

TEST_F(ForwardTest, PlacementsAndPaddingGoWithThePictures) {
  std::optional<absl::StatusOr<Response>> one, two;
  Shares batch;
  batch.push_back(Share({1, 2}, &one));
  batch.push_back(Share({3}, &two));
  Compute(std::move(batch));
  EXPECT_EQ(model_.last_placements, std::vector<models::Placement>(3, kPlacement));
  const std::string text = metrics_.Exposition();
  EXPECT_THAT(text, HasSubstr("saccade_padding_ratio_sum{model=\"m\",version=\"1\"} 1.5"));
  EXPECT_THAT(text, HasSubstr("saccade_padding_ratio_count{model=\"m\",version=\"1\"} 3"));
}

TEST_F(ForwardTest, ProgressReachesEachRequestUntilItIsCancelled) {
  std::optional<absl::StatusOr<Response>> one, two;
  const auto cancellation = std::make_shared<Cancellation>();
  Shares batch;
  batch.push_back(Share({1, 2}, &one));
  batch.push_back(Share({7}, &two, cancellation));
  cancellation->Cancel();
  Compute(std::move(batch));
  EXPECT_EQ(advances_, 3);
  EXPECT_EQ(reported_, (std::vector<double>{0.25, 0.75, 0.5}));
  EXPECT_EQ(model_.wanted, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(one->ok());
  // A model that stops because it was told to does not count as failed.
  EXPECT_EQ(two->status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ForwardTest, DroppedShareIsStillAnswered) {
  std::optional<absl::StatusOr<Response>> outcome;
  Share({5}, &outcome).reset();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status().code(), absl::StatusCode::kInternal);
}

// What is gathered around the network's own code may run out of memory too.
TEST_F(ForwardTest, AShortageBeforeTheNetworkFailsThePassAlone) {
  std::optional<absl::StatusOr<Response>> outcome;
  Shares batch;
  batch.push_back(Share({1}, &outcome));
  const PassEnd end = ComputeShares(
      std::move(batch), Clock::Real(), model_metrics_.get(),
      [](const Shares&) -> absl::StatusOr<std::vector<ShareAnswer>> { throw std::bad_alloc(); });
  EXPECT_EQ(outcome->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(end.no_room_for, 1);
  EXPECT_TRUE(end.failed.empty());
}

}  // namespace
}  // namespace saccade::server
