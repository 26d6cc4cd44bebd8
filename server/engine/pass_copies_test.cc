// Tests of passes that are copied whole for a shadow version.
#include "server/engine/pass_copies.h"

#include <atomic>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/passes.h"
#include "server/engine/shadow_sender.h"
#include "server/engine/testing/calls.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

// A shadow version whose queue is emptied by hand.
class QueueingModel final : public FakeModel {
 public:
  using FakeModel::FakeModel;

  std::shared_ptr<const ModelIdentity> identity() const override { return identity_; }

  absl::Status Submit(std::unique_ptr<CallShare>& share) override {
    if (fails_next_.exchange(false)) throw std::bad_alloc();
    absl::MutexLock lock(&mutex_);
    share->BeginWait(&waiting_);
    queued_.push_back(std::move(share));
    return absl::OkStatus();
  }

  // Blocks until something is queued.
  std::unique_ptr<CallShare> Take() {
    absl::MutexLock lock(&mutex_);
    const auto any = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !queued_.empty(); };
    mutex_.Await(absl::Condition(&any));
    std::unique_ptr<CallShare> share = std::move(queued_.front());
    queued_.pop_front();
    return share;
  }

  int64_t waiting() const { return waiting_; }
  // The next Submit() throws.
  void FailNext() { fails_next_ = true; }

 private:
  const std::shared_ptr<const ModelIdentity> identity_ = std::make_shared<const ModelIdentity>();
  absl::Mutex mutex_;
  std::deque<std::unique_ptr<CallShare>> queued_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> waiting_{0};
  std::atomic<bool> fails_next_{false};
};

// A version whose passes are copied for another one.
class TriedModel final : public FakeModel {
 public:
  TriedModel(std::shared_ptr<Shadow> shadow, std::shared_ptr<ReadyModel> version, const FakeModel& like,
             ModelMetrics* metrics)
      : FakeModel(3, &like.description(), metrics),
        shadow_(std::move(shadow)),
        version_(std::move(version)) {}

  std::shared_ptr<Shadow> shadow() const override { return shadow_; }
  absl::StatusOr<std::shared_ptr<ReadyModel>> FindShadow() const override {
    if (version_ == nullptr) return absl::UnavailableError("not loaded");
    return version_;
  }
  ShadowSender* shadow_sender() const override { return &sender_; }
  bool has_waiting() const override { return has_waiting_; }
  bool times_passes() const override { return true; }

  void SetWaiting() { has_waiting_ = true; }
  void Unload() { version_ = nullptr; }

 private:
  const std::shared_ptr<Shadow> shadow_;
  std::shared_ptr<ReadyModel> version_;
  bool has_waiting_ = false;
  mutable ShadowSender sender_;
};

absl::StatusOr<std::vector<ShareAnswer>> Ones(const Shares& shares) {
  std::vector<ShareAnswer> answers;
  for (const auto& share : shares) {
    answers.emplace_back(std::vector<models::TaskResult>(static_cast<size_t>(share->size()),
                                                         models::Classification{.logits = {0, 1}}));
  }
  return answers;
}

class PassCopiesTest : public CallTest {
 protected:
  static ShadowRule Rule() {
    PromoteRule promote;
    promote.conditions = {{.measure = ShadowMeasure::kP99, .bound = 1.5}};
    promote.after = 1000;
    return {.version = 4, .share = 1, .promote = promote};
  }

  // The only share of a request with `items` items, of which each has so many bytes.
  std::unique_ptr<CallShare> Share(int items, int64_t bytes = 0) {
    auto call = std::make_shared<PredictCall>(
        RequestOf(items),
        [this](const absl::StatusOr<Response>& answer) { answers_.push_back(answer.status()); },
        PredictCall::Deps{.model = tried_, .metrics = &metrics_, .clock = &clock_});
    for (int i = 0; i < items; ++i) AddItem(*call, 32, bytes);
    call->MarkPrepared();
    return std::move(ShareOut(std::move(call)).at(0));
  }

  Request RequestOf(int items) {
    Request request;
    request.arrival = clock_.Now();
    request.input = std::vector<Picture>(static_cast<size_t>(items));
    return request;
  }

  void AddItem(PredictCall& call, int64_t side, int64_t bytes) {
    auto owned = std::make_unique<float[]>(1);
    // Nothing reads them.
    const std::string_view pixels(reinterpret_cast<const char*>(owned.get()), static_cast<size_t>(bytes));
    call.AddItem({.placement = {.sent = {1, 1}, .scaled = {1, 1}, .bucket = {side, side}},
                  .pixels = BytePieces(pixels),
                  .owned = std::move(owned)});
  }

  // A pass of the version that answers, over one request for each number of items.
  void Compute(const std::vector<int>& items, int64_t bytes = 0) {
    Shares shares;
    for (const int count : items) shares.push_back(Share(count, bytes));
    Compute(std::move(shares), Ones);
  }
  void Compute(Shares shares, const RunPass& run) {
    ComputeShares(std::move(shares), &clock_, model_metrics_.get(), run);
  }

  // Takes what was handed to the shadow version, as one task, and computes it.
  void ComputeCopies(int64_t size, const RunPass& run = Ones) {
    Shares batch;
    batch.push_back(queue_->Take());
    EXPECT_EQ(batch[0]->size(), size);
    batch = Apart(std::move(batch));
    for (const auto& share : batch) share->EndWait();
    Compute(std::move(batch), run);
  }

  int64_t Lost(ShadowLoss why) { return shadow_->Report().dropped.at(static_cast<size_t>(why)); }

  void ExpectNoneInFlight() {
    EXPECT_EQ(shadow_->Report().in_flight, 0);
    EXPECT_EQ(shadow_->Report().in_flight_bytes, 0);
    EXPECT_EQ(queue_->waiting(), 0);
  }

  const std::shared_ptr<Shadow> shadow_ =
      std::make_shared<Shadow>(Rule(), metrics_.ForShadowOf("m", 3, 4, /*gated=*/true));
  const std::shared_ptr<QueueingModel> queue_ =
      std::make_shared<QueueingModel>(4, &description_, model_metrics_.get());
  const std::shared_ptr<TriedModel> tried_ =
      std::make_shared<TriedModel>(shadow_, queue_, *model_, model_metrics_.get());
  // Of the version's requests, in the order of their answers.
  std::vector<absl::Status> answers_;
};

TEST_F(PassCopiesTest, APassIsOnePassOfTheShadowVersionAndTimedOnce) {
  Compute({1, 3, 2});
  EXPECT_EQ(answers_.size(), 3u) << "before the copies are computed";
  EXPECT_EQ(shadow_->Report().in_flight, 3);
  ComputeCopies(6);
  const ShadowReport report = shadow_->Report();
  EXPECT_EQ(report.compared, 3);
  EXPECT_EQ(report.equal, 3);
  EXPECT_EQ(report.timed, 1);
  EXPECT_EQ(report.timed_requests, 3);
  ExpectNoneInFlight();
  EXPECT_THAT(metrics_.Exposition(),
              HasSubstr("saccade_shadow_timed_passes_total{model=\"m\",shadow=\"4\",version=\"3\"} 1"));
}

TEST_F(PassCopiesTest, ARequestAloneIsAPassToo) {
  Compute({2});
  ComputeCopies(2);
  EXPECT_EQ(shadow_->Report().timed, 1);
  EXPECT_EQ(shadow_->Report().timed_requests, 1);
}

TEST_F(PassCopiesTest, OneOfWhichOneRequestFailedIsComparedWithoutItAndNotTimed) {
  Shares shares;
  for (int i = 0; i < 3; ++i) shares.push_back(Share(1));
  Compute(std::move(shares), [](const Shares& pass) {
    auto answers = Ones(pass);
    std::get<std::vector<models::TaskResult>>((*answers)[0])[0] = models::Failure{"broken"};
    return answers;
  });
  EXPECT_FALSE(answers_.at(0).ok());
  ComputeCopies(2);
  EXPECT_EQ(shadow_->Report().compared, 2);
  EXPECT_EQ(shadow_->Report().timed, 0);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, ARequestOfSeveralPassesIsCopiedByItself) {
  auto call = std::make_shared<PredictCall>(
      RequestOf(2), [this](const absl::StatusOr<Response>& answer) { answers_.push_back(answer.status()); },
      PredictCall::Deps{.model = tried_, .metrics = &metrics_, .clock = &clock_});
  AddItem(*call, 32, 0);
  AddItem(*call, 64, 0);
  call->MarkPrepared();
  Shares parts = ShareOut(std::move(call));
  ASSERT_EQ(parts.size(), 2u);
  Shares first;
  first.push_back(std::move(parts[0]));
  first.push_back(Share(1));
  Compute(std::move(first), Ones);
  ComputeCopies(1);
  EXPECT_EQ(shadow_->Report().compared, 1);
  Shares second;
  second.push_back(std::move(parts[1]));
  Compute(std::move(second), Ones);
  EXPECT_EQ(answers_.size(), 2u);
  // Two buckets are two passes there too.
  ComputeCopies(1);
  ComputeCopies(1);
  EXPECT_EQ(shadow_->Report().compared, 2);
  EXPECT_EQ(shadow_->Report().timed, 0);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, APassThatIsTooLargeIsDroppedWhole) {
  Compute({1, 1}, Shadow::kMaxBytes / 2 - kMiB);
  ComputeCopies(2);
  Compute({1, 1}, Shadow::kMaxBytes / 2);
  EXPECT_EQ(Lost(ShadowLoss::kTooLarge), 2);
  EXPECT_EQ(shadow_->Report().compared, 2);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, OnePassIsInFlightAtATime) {
  Compute({1, 1});
  Compute({1, 1, 1});
  EXPECT_EQ(Lost(ShadowLoss::kBehind), 3);
  ComputeCopies(2);
  Compute({1, 1, 1});
  ComputeCopies(3);
  EXPECT_EQ(shadow_->Report().compared, 5);
  EXPECT_EQ(shadow_->Report().timed, 2);
}

TEST_F(PassCopiesTest, NothingIsCopiedWhileRequestsWaitOrTheVersionIsNotReady) {
  tried_->Unload();
  Compute({1, 1});
  EXPECT_EQ(Lost(ShadowLoss::kUnavailable), 2);
  tried_->SetWaiting();
  Compute({1, 1, 1});
  EXPECT_EQ(Lost(ShadowLoss::kBusy), 3);
  EXPECT_EQ(answers_.size(), 5u);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, APassThatIsEvictedIsDropped) {
  Compute({1, 2});
  queue_->Take()->Reject(absl::ResourceExhaustedError("another request took its place"));
  EXPECT_EQ(Lost(ShadowLoss::kUnavailable), 2);
  EXPECT_EQ(shadow_->Report().compared, 0);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, APassThatIsLostIsAFailureOfEachOfItsRequests) {
  Compute({1, 2});
  queue_->Take().reset();
  EXPECT_EQ(shadow_->Report().failed, 2);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, TheSenderGoesOnAfterAnException) {
  queue_->FailNext();
  Compute({1, 2});
  while (shadow_->Report().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(shadow_->Report().failed, 2);
  Compute({1, 1});
  ComputeCopies(2);
  EXPECT_EQ(shadow_->Report().compared, 4);
  EXPECT_EQ(shadow_->Report().failed, 2);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, AVersionThatIsUnloadedDropsItsCopies) {
  tried_->shadow_sender()->Close();
  Compute({1, 2});
  EXPECT_EQ(Lost(ShadowLoss::kUnavailable), 2);
  ExpectNoneInFlight();
}

// The shadow version computes the requests one by one if their pass fails, like any version.
TEST_F(PassCopiesTest, OneBadCopyFailsAloneAndThePassIsNotTimed) {
  Compute({1, 1, 1});
  int passes = 0;
  ComputeCopies(3, [&](const Shares& shares) -> absl::StatusOr<std::vector<ShareAnswer>> {
    // All together, and then the first.
    if (++passes <= 2) return absl::InternalError("unlucky");
    return Ones(shares);
  });
  EXPECT_EQ(shadow_->Report().compared, 3);
  EXPECT_EQ(shadow_->Report().failed, 1);
  EXPECT_EQ(shadow_->Report().timed, 0);
  ExpectNoneInFlight();
}

TEST_F(PassCopiesTest, AClientThatIsGoneLeavesTheOthersToBeCompared) {
  auto gone = std::make_shared<Cancellation>();
  Request request = RequestOf(1);
  request.cancellation = gone;
  auto call = std::make_shared<PredictCall>(
      std::move(request),
      [this](const absl::StatusOr<Response>& answer) { answers_.push_back(answer.status()); },
      PredictCall::Deps{.model = tried_, .metrics = &metrics_, .clock = &clock_});
  AddItem(*call, 32, 0);
  call->MarkPrepared();
  Shares shares = ShareOut(std::move(call));
  shares.push_back(Share(1));
  Compute(std::move(shares), [&](const Shares& pass) {
    gone->Cancel();
    auto answers = Ones(pass);
    // What a model returns that was told to stop.
    std::get<std::vector<models::TaskResult>>((*answers)[0])[0] = models::Failure{"stopped"};
    return answers;
  });
  EXPECT_TRUE(absl::IsCancelled(answers_.at(0)));
  ComputeCopies(1);
  EXPECT_EQ(shadow_->Report().compared, 1);
  EXPECT_EQ(shadow_->Report().timed, 0);
  ExpectNoneInFlight();
}

// Other rules compare no times: their copies are computed by themselves, a few at a time.
TEST(PassCopiesOfOtherRulesTest, AreNotOfWholePasses) {
  EXPECT_FALSE(Shadow({.version = 4, .share = 1}, nullptr).copies_passes());
  PromoteRule promote;
  promote.conditions = {{.measure = ShadowMeasure::kAgreement, .bound = 0.9}};
  promote.after = 10;
  EXPECT_FALSE(Shadow({.version = 4, .share = 1, .promote = promote}, nullptr).copies_passes());
  promote.conditions.push_back({.measure = ShadowMeasure::kP50, .bound = 2});
  EXPECT_TRUE(Shadow({.version = 4, .share = 1, .promote = promote}, nullptr).copies_passes());
}

}  // namespace
}  // namespace saccade::server
