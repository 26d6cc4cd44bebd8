#include "server/tracing/span_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using Kind = SendOutcome::Kind;
using ::testing::ElementsAre;

std::vector<Span> Spans(int count) {
  return std::vector<Span>(static_cast<size_t>(count), Span{.name = "one"});
}

// A collector that answers as the test says, and records the sizes of the batches.
class Collector {
 public:
  SendOutcome Take(const std::vector<Span>& spans) {
    const absl::MutexLock lock(&mutex_);
    batches_.push_back(static_cast<int>(spans.size()));
    if (answers_.empty()) return {};
    SendOutcome next = answers_.front();
    answers_.erase(answers_.begin());
    return next;
  }
  void Answers(std::vector<SendOutcome> answers) {
    const absl::MutexLock lock(&mutex_);
    answers_ = std::move(answers);
  }
  void Count(SpanFate fate, int64_t spans) {
    const absl::MutexLock lock(&mutex_);
    fates_[fate] += spans;
  }
  void Warn(const std::string& why) {
    const absl::MutexLock lock(&mutex_);
    warnings_.push_back(why);
  }
  std::vector<int> AwaitBatches(size_t count) {
    const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return batches_.size() >= count; };
    const absl::MutexLock lock(&mutex_, absl::Condition(&came));
    return batches_;
  }
  int64_t AwaitFate(SpanFate fate, int64_t min) {
    const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return fates_[fate] >= min; };
    const absl::MutexLock lock(&mutex_, absl::Condition(&came));
    return fates_[fate];
  }
  int64_t fate(SpanFate fate) { return AwaitFate(fate, 0); }
  std::vector<std::string> warnings() {
    const absl::MutexLock lock(&mutex_);
    return warnings_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<int> batches_ ABSL_GUARDED_BY(mutex_);
  std::vector<SendOutcome> answers_ ABSL_GUARDED_BY(mutex_);
  std::map<SpanFate, int64_t> fates_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
};

class SpanExporterTest : public ::testing::Test {
 protected:
  SpanExporter& Start(SpanExporter::Options options = {}) {
    options.send = [this](const std::vector<Span>& spans, absl::Duration, const std::function<bool()>&) {
      if (fails_next_.exchange(false)) throw std::bad_alloc();
      return collector_.Take(spans);
    };
    options.count = [this](SpanFate fate, int64_t spans) { collector_.Count(fate, spans); };
    options.warn = [this](const std::string& why) { collector_.Warn(why); };
    exporter_ = std::make_unique<SpanExporter>(std::move(options), &clock_);
    return *exporter_;
  }

  FakeClock clock_;
  Collector collector_;
  // The next batch finds no memory.
  std::atomic<bool> fails_next_ = false;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(SpanExporterTest, WaitsForCompanyOnlySoLong) {
  SpanExporter& exporter = Start();
  exporter.Push(Spans(3));
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(collector_.AwaitBatches(1), ElementsAre(3));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kExported, 3), 3);
}

TEST_F(SpanExporterTest, SendsAFullBatchAtOnce) {
  SpanExporter& exporter = Start({.max_queued = 8, .max_in_batch = 4});
  exporter.Push(Spans(4));
  EXPECT_THAT(collector_.AwaitBatches(1), ElementsAre(4));
}

TEST_F(SpanExporterTest, WhatIsTooMuchForABatchGoesInSeveral) {
  SpanExporter& exporter = Start({.max_queued = 8, .max_in_batch = 3});
  exporter.Push(Spans(8));
  EXPECT_THAT(collector_.AwaitBatches(2), ElementsAre(3, 3));
  // Exported spans leave room in the queue, and the remaining ones fill a batch.
  collector_.AwaitFate(SpanFate::kExported, 6);
  exporter.Push(Spans(1));
  EXPECT_THAT(collector_.AwaitBatches(3), ElementsAre(3, 3, 3));
}

TEST_F(SpanExporterTest, DropsAndCountsWhatFindsNoRoom) {
  SpanExporter& exporter = Start({.max_queued = 4, .max_in_batch = 4});
  exporter.Push(Spans(3));
  // Two spans do not fit, so none of them is kept.
  exporter.Push(Spans(2));
  EXPECT_EQ(collector_.fate(SpanFate::kQueueFull), 2);
  exporter.Push(Spans(1));
  EXPECT_THAT(collector_.AwaitBatches(1), ElementsAre(4));
}

TEST_F(SpanExporterTest, TriesAgainLater) {
  collector_.Answers({{.kind = Kind::kTryAgain, .why = "down"}, {.kind = Kind::kTryAgain, .why = "down"}});
  SpanExporter& exporter = Start({.max_in_batch = 1});
  exporter.Push(Spans(1));
  collector_.AwaitBatches(1);
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(1));
  collector_.AwaitBatches(2);
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kExported, 1), 1);
  EXPECT_EQ(collector_.fate(SpanFate::kFailed), 0);
}

TEST_F(SpanExporterTest, WaitsAsLongAsTheCollectorAsks) {
  collector_.Answers({{.kind = Kind::kTryAgain, .wait = absl::Seconds(20), .why = "busy"}});
  SpanExporter& exporter = Start({.max_in_batch = 1});
  exporter.Push(Spans(1));
  collector_.AwaitBatches(1);
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(19));
  clock_.AwaitWaiters(1);
  EXPECT_THAT(collector_.AwaitBatches(1), ElementsAre(1));
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kExported, 1), 1);
}

TEST_F(SpanExporterTest, GivesUpABatchInTheEndAndSaysSo) {
  collector_.Answers({{.kind = Kind::kTryAgain, .wait = absl::Hours(1), .why = "busy"}});
  SpanExporter& exporter = Start({.max_in_batch = 1});
  exporter.Push(Spans(1));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kFailed, 1), 1);
  exporter.Push(Spans(1));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kExported, 1), 1);
  EXPECT_THAT(collector_.warnings(), ElementsAre("busy"));
}

TEST_F(SpanExporterTest, WhatIsRefusedIsNotTriedAgain) {
  collector_.Answers({{.kind = Kind::kRefused, .why = "no"}, {.kind = Kind::kRefused, .why = "no"}});
  SpanExporter& exporter = Start({.max_in_batch = 2});
  exporter.Push(Spans(2));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kFailed, 2), 2);
  exporter.Push(Spans(2));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kFailed, 4), 4);
  exporter.Stop(absl::Seconds(1));
  // At most one warning per minute.
  EXPECT_THAT(collector_.warnings(), ElementsAre("no"));
}

TEST_F(SpanExporterTest, CountsWhatTheCollectorRejected) {
  collector_.Answers({{.kind = Kind::kSent, .rejected = 2, .why = "odd ones"}});
  SpanExporter& exporter = Start({.max_in_batch = 3});
  exporter.Push(Spans(3));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kRejected, 2), 2);
  EXPECT_EQ(collector_.fate(SpanFate::kExported), 1);
}

TEST_F(SpanExporterTest, GoesOnAfterABatchWithoutMemory) {
  fails_next_ = true;
  SpanExporter& exporter = Start({.max_queued = 8, .max_in_batch = 4});
  exporter.Push(Spans(4));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kFailed, 4), 4);
  exporter.Push(Spans(4));
  EXPECT_EQ(collector_.AwaitFate(SpanFate::kExported, 4), 4);
}

TEST_F(SpanExporterTest, StopSendsWhatWaits) {
  SpanExporter& exporter = Start({.max_queued = 8, .max_in_batch = 4});
  exporter.Push(Spans(3));
  exporter.Push(Spans(3));
  exporter.Stop(absl::Seconds(1));
  EXPECT_EQ(collector_.fate(SpanFate::kExported), 6);
  exporter.Push(Spans(1));
  EXPECT_EQ(collector_.fate(SpanFate::kQueueFull), 1);
}

TEST_F(SpanExporterTest, StopDoesNotWaitForACollectorThatIsDown) {
  const SendOutcome down{.kind = Kind::kTryAgain, .why = "down"};
  collector_.Answers({down, down, down, down});
  SpanExporter& exporter = Start({.max_queued = 4, .max_in_batch = 2});
  exporter.Push(Spans(2));
  collector_.AwaitBatches(1);
  clock_.AwaitWaiters(1);
  exporter.Push(Spans(2));
  // The clock stands still, so there is no wait.
  exporter.Stop(absl::Seconds(1));
  EXPECT_EQ(collector_.fate(SpanFate::kFailed), 4);
}

TEST_F(SpanExporterTest, WithoutTimeStopDropsWhatWaits) {
  SpanExporter& exporter = Start();
  exporter.Push(Spans(3));
  exporter.Stop(absl::ZeroDuration());
  EXPECT_EQ(collector_.fate(SpanFate::kFailed), 3);
}

}  // namespace
}  // namespace saccade::server
