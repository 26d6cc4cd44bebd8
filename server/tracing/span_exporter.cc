#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <random>
#include <utility>

namespace saccade::server {
namespace {

// The delay before the second attempt; it doubles with every attempt.
constexpr absl::Duration kFirstWait = absl::Seconds(1);
constexpr absl::Duration kLongestWait = absl::Seconds(16);
constexpr absl::Duration kBetweenWarnings = absl::Seconds(60);

// A random delay between half of `wait` and `wait`, so that daemons that lost the same collector do not
// reconnect together.
absl::Duration Spread(absl::Duration wait) {
  thread_local std::minstd_rand generator{std::random_device()()};
  return wait * std::uniform_real_distribution<double>(0.5, 1)(generator);
}

}  // namespace

SpanExporter::SpanExporter(Options options, Clock* clock)
    : options_(std::move(options)), clock_(clock), thread_([this] { Run(); }) {}

SpanExporter::~SpanExporter() { Stop(absl::ZeroDuration()); }

void SpanExporter::Push(std::vector<Span> spans) {
  const auto count = static_cast<int64_t>(spans.size());
  {
    const absl::MutexLock lock(&mutex_);
    if (!is_stopping() && queued_ + count <= options_.max_queued) {
      queue_.push_back(std::move(spans));
      queued_ += count;
      return;
    }
  }
  options_.count(SpanFate::kQueueFull, count);
}

void SpanExporter::Stop(absl::Duration max) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!is_stopping()) stop_at_ = clock_->Now() + max;
  }
  if (thread_.joinable()) thread_.join();
}

bool SpanExporter::IsDue() const { return is_stopping() || queued_ >= options_.max_in_batch; }

absl::Time SpanExporter::stop_at() {
  const absl::MutexLock lock(&mutex_);
  return stop_at_;
}

std::vector<std::vector<Span>> SpanExporter::Take() {
  std::vector<std::vector<Span>> taken;
  for (int64_t room = options_.max_in_batch; room > 0 && !queue_.empty();) {
    std::vector<Span>& first = queue_.front();
    const int64_t count = std::min(room, static_cast<int64_t>(first.size()));
    room -= count;
    if (count == static_cast<int64_t>(first.size())) {
      taken.push_back(std::move(first));
      queue_.pop_front();
    } else {
      const auto end = first.begin() + count;
      taken.emplace_back(std::make_move_iterator(first.begin()), std::make_move_iterator(end));
      first.erase(first.begin(), end);
    }
    queued_ -= count;
  }
  return taken;
}

void SpanExporter::Run() {
  for (;;) {
    std::vector<std::vector<Span>> taken;
    int64_t lost = 0;
    {
      const absl::MutexLock lock(&mutex_);
      clock_->AwaitUntil(&mutex_, absl::Condition(this, &SpanExporter::IsDue),
                         clock_->Now() + options_.delay);
      if (queue_.empty() && is_stopping()) return;
      const int64_t before = queued_;
      try {
        taken = Take();
      } catch (const std::bad_alloc&) {
        // The spans that were taken are lost, and the queue's rest may be incomplete.
        lost = before;
        queue_.clear();
        queued_ = 0;
      }
    }
    if (lost > 0) Lose(lost, SpanFate::kFailed, "out of memory");
    int64_t count = 0;
    for (const std::vector<Span>& spans : taken) count += static_cast<int64_t>(spans.size());
    if (count == 0) continue;
    try {
      std::vector<Span> batch;
      for (std::vector<Span>& spans : taken) {
        batch.insert(batch.end(), std::make_move_iterator(spans.begin()),
                     std::make_move_iterator(spans.end()));
      }
      Export(batch);
    } catch (const std::exception& error) {
      // The thread goes on with the next batch.
      Lose(count, SpanFate::kFailed, error.what());
    }
  }
}

void SpanExporter::Export(const std::vector<Span>& batch) {
  const auto spans = static_cast<int64_t>(batch.size());
  const absl::Time until = clock_->Now() + options_.max_trying;
  const auto given_up = [this] { return stop_at() <= clock_->Now(); };
  for (int attempt = 0;; ++attempt) {
    const absl::Duration left = std::min(until, stop_at()) - clock_->Now();
    if (left <= absl::ZeroDuration())
      return Lose(spans, SpanFate::kFailed, "the time limit for sending the batch has passed");
    const SendOutcome outcome = options_.send(batch, left, given_up);
    if (outcome.kind == SendOutcome::Kind::kSent) {
      const int64_t rejected = std::clamp(outcome.rejected, int64_t{0}, spans);
      options_.count(SpanFate::kExported, spans - rejected);
      if (rejected > 0) Lose(rejected, SpanFate::kRejected, outcome.why);
      return;
    }
    const auto wait = WaitAfter(outcome, attempt, until);
    if (!wait) return Lose(spans, SpanFate::kFailed, outcome.why);
    const absl::MutexLock lock(&mutex_);
    const auto stops = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return is_stopping(); };
    clock_->AwaitUntil(&mutex_, absl::Condition(&stops), clock_->Now() + *wait);
  }
}

std::optional<absl::Duration> SpanExporter::WaitAfter(const SendOutcome& outcome, int attempt,
                                                      absl::Time until) {
  // While stopping, each batch is tried once, so that the next one gets its turn.
  if (outcome.kind == SendOutcome::Kind::kRefused || stop_at() != absl::InfiniteFuture()) return std::nullopt;
  const absl::Duration backoff =
      Spread(std::min(kFirstWait * (int64_t{1} << std::min(attempt, 10)), kLongestWait));
  const absl::Duration wait = std::max(backoff, outcome.wait.value_or(absl::ZeroDuration()));
  if (clock_->Now() + wait >= until) return std::nullopt;
  return wait;
}

void SpanExporter::Lose(int64_t spans, SpanFate fate, const std::string& why) {
  options_.count(fate, spans);
  const absl::Time now = clock_->Now();
  if (now - last_warning_ < kBetweenWarnings) return;
  last_warning_ = now;
  options_.warn(why);
}

}  // namespace saccade::server
