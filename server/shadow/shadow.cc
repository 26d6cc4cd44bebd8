#include "server/shadow/shadow.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/core/chance.h"

namespace saccade::server {
namespace {

// Whether the error says nothing about the version that was to compute the copy.
bool WasNotComputed(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status);
}

}  // namespace

bool Shadow::Wants(bool waiting) {
  if (!Happens(rule_.share)) return false;
  if (!waiting) return true;
  Drop(ShadowLoss::kBusy);
  return false;
}

bool Shadow::Enter(int64_t bytes) {
  if (bytes > kMaxBytes) {
    Drop(ShadowLoss::kTooLarge);
    return false;
  }
  // Both are counted first, so that threads that enter at the same time do not exceed the bounds together.
  const int64_t copies = ++in_flight_;
  const int64_t all_bytes = in_flight_bytes_ += bytes;
  if (copies <= kMaxCopies && all_bytes <= kMaxBytes) return true;
  Leave(bytes);
  Drop(ShadowLoss::kBehind);
  return false;
}

void Shadow::EndAnswered(const Original& original, const ComparedAnswer& answer,
                         const ComparedAnswer& of_shadow, absl::Time now) {
  const AnswerComparison comparison = CompareAnswers(answer, of_shadow);
  const bool agreed = Agrees(comparison, rule_.tolerance);
  if (metrics_ != nullptr)
    metrics_->AddCompared(comparison.equal, agreed, comparison.difference, original.span, now);
  const bool measured = std::isfinite(comparison.difference);
  absl::MutexLock lock(&mutex_);
  StartReport(original);
  ++report_.compared;
  report_.task = comparison.task;
  if (comparison.equal) ++report_.equal;
  if (measured) {
    ++report_.measured;
    report_.sum_of_differences += comparison.difference;
    report_.largest_difference = std::max(report_.largest_difference, comparison.difference);
  }
  if (agreed) {
    ++report_.agreed;
    return;
  }
  report_.last_disagreement = {.request = original.id, .trace = original.span.trace, .at = now};
  if (measured) report_.last_disagreement->difference = comparison.difference;
}

void Shadow::EndFailed(const Original& original, const absl::Status& why, absl::Time now) {
  if (WasNotComputed(why)) return Drop(ShadowLoss::kUnavailable);
  if (metrics_ != nullptr) metrics_->AddFailed();
  absl::MutexLock lock(&mutex_);
  StartReport(original);
  ++report_.compared;
  ++report_.failed;
  report_.last_disagreement = {
      .request = original.id, .trace = original.span.trace, .at = now, .error = std::string(why.message())};
}

void Shadow::Drop(ShadowLoss why) {
  if (metrics_ != nullptr) metrics_->AddDropped(why);
  ++dropped_.at(static_cast<size_t>(why));
}

ShadowReport Shadow::Report() const {
  ShadowReport report;
  {
    absl::MutexLock lock(&mutex_);
    report = report_;
  }
  report.in_flight = in_flight_;
  report.in_flight_bytes = in_flight_bytes_;
  for (size_t why = 0; why < dropped_.size(); ++why) report.dropped.at(why) = dropped_.at(why);
  return report;
}

void Shadow::Leave(int64_t bytes) {
  --in_flight_;
  in_flight_bytes_ -= bytes;
}

void Shadow::StartReport(const Original& original) {
  if (original.shadow == compared_with_) return;
  // What was found of an earlier load says nothing about this one.
  report_ = {.rule = rule_};
  compared_with_ = original.shadow;
}

}  // namespace saccade::server
