#include "server/shadow/shadow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "server/core/chance.h"

namespace saccade::server {
namespace {

constexpr double kMedian = 0.5;
constexpr double kSlowest = 0.99;
constexpr double kUnknown = std::numeric_limits<double>::infinity();

// Whether the error means that the shadow version did not compute the copy.
bool WasNotComputed(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status);
}

}  // namespace

Shadow::Shadow(const ShadowRule& rule, std::unique_ptr<ShadowMetrics> metrics, std::function<void()> decided)
    : rule_(rule),
      copies_passes_(rule.promote && TimedFor(*rule.promote) > 0),
      metrics_(std::move(metrics)),
      decided_(std::move(decided)),
      report_{.rule = rule} {}

bool Shadow::Wants(bool waiting, int64_t requests) {
  if (promoted_.load(std::memory_order_relaxed) || !RandomlyTrue(rule_.share)) return false;
  if (!waiting) return true;
  Drop(ShadowLoss::kBusy, requests);
  return false;
}

bool Shadow::Enter(int64_t bytes, int64_t requests) {
  if (bytes > kMaxBytes) {
    Drop(ShadowLoss::kTooLarge, requests);
    return false;
  }
  // Both are counted first, so that threads that enter at the same time do not exceed the bounds together.
  const int64_t copies = in_flight_ += requests;
  const int64_t all_bytes = in_flight_bytes_ += bytes;
  if (copies <= (copies_passes_ ? requests : kMaxCopies) && all_bytes <= kMaxBytes) return true;
  Leave(bytes, requests);
  Drop(ShadowLoss::kBehind, requests);
  return false;
}

void Shadow::EndAnswered(const Original& original, const ComparedAnswer& answer,
                         const ComparedAnswer& of_shadow, const PassTime& pass_of_shadow, absl::Time now) {
  const AnswerComparison comparison = CompareAnswers(answer, of_shadow);
  const bool agreed = Agrees(comparison, rule_.tolerance);
  const bool measured = std::isfinite(comparison.difference);
  bool decided = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!IsCompared(original.shadow)) return Drop(ShadowLoss::kUnavailable);
    StartReport(original.shadow);
    if (metrics_ != nullptr)
      metrics_->AddCompared(comparison.equal, agreed, comparison.difference, original.span, now);
    ++report_.compared;
    report_.task = comparison.task;
    const int64_t timed_before = times_.size();
    // Without a rule the threads' waits for a core are not measured (ReadyModel::times_passes()), so the
    // times are not comparable.
    if (rule_.promote) times_.Add(original.pass, pass_of_shadow);
    if (metrics_ != nullptr && times_.size() > timed_before) metrics_->AddTimedPass();
    if (comparison.equal) ++report_.equal;
    if (measured) {
      ++report_.measured;
      report_.sum_of_differences += comparison.difference;
      report_.largest_difference = std::max(report_.largest_difference, comparison.difference);
    }
    if (agreed) {
      ++report_.agreed;
    } else {
      Disagreement found = {.at = now};
      if (measured) found.difference = comparison.difference;
      NoteDisagreement(original, std::move(found));
    }
    decided = DecideIfDue(now);
    ShowPromotion();
  }
  if (decided && decided_) decided_();
}

void Shadow::EndFailed(const Original& original, const absl::Status& why, absl::Time now) {
  if (WasNotComputed(why)) return Drop(ShadowLoss::kUnavailable);
  bool decided = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!IsCompared(original.shadow)) return Drop(ShadowLoss::kUnavailable);
    StartReport(original.shadow);
    if (metrics_ != nullptr) metrics_->AddFailed();
    ++report_.compared;
    ++report_.failed;
    NoteDisagreement(original, {.at = now, .error = std::string(why.message())});
    decided = DecideIfDue(now);
    ShowPromotion();
  }
  if (decided && decided_) decided_();
}

void Shadow::Drop(ShadowLoss why, int64_t requests) {
  if (metrics_ != nullptr) metrics_->AddDropped(why, requests);
  dropped_.at(static_cast<size_t>(why)) += requests;
}

ShadowReport Shadow::Report() const {
  ShadowReport report;
  {
    absl::MutexLock lock(&mutex_);
    report = report_;
    report.differing = differing_.worst();
    report.timed = times_.size();
    report.timed_requests = times_.requests();
    if (report.timed > 0) {
      report.p50 = times_.RatioAt(kMedian);
      report.p99 = times_.RatioAt(kSlowest);
    }
    report.decision = Decision();
  }
  report.in_flight = in_flight_;
  report.in_flight_bytes = in_flight_bytes_;
  for (size_t why = 0; why < dropped_.size(); ++why) report.dropped.at(why) = dropped_.at(why);
  return report;
}

void Shadow::Leave(int64_t bytes, int64_t requests) {
  in_flight_ -= requests;
  in_flight_bytes_ -= bytes;
}

void Shadow::StartReport(const std::shared_ptr<const ModelIdentity>& shadow) {
  if (shadow == compared_with_) return;
  report_ = {.rule = rule_};
  times_ = {};
  differing_ = {};
  untold_ = false;
  compared_with_ = shadow;
  if (rule_.promote && metrics_ != nullptr) metrics_->SetDecision(std::nullopt);
}

void Shadow::NoteDisagreement(const Original& original, Disagreement found) {
  found.request = original.id;
  found.trace = original.span.trace;
  report_.last_disagreement = found;
  if (!rule_.promote) return;
  found.picture = original.picture;
  differing_.Add(std::move(found));
}

GateMeasures Shadow::Measures() const {
  GateMeasures measures = {.compared = report_.compared, .timed = times_.size()};
  const auto set = [&](ShadowMeasure measure, double value) {
    measures.values.at(static_cast<size_t>(measure)) = value;
  };
  const auto compared = static_cast<double>(report_.compared);
  set(ShadowMeasure::kAgreement, static_cast<double>(report_.agreed) / compared);
  set(ShadowMeasure::kEquality, static_cast<double>(report_.equal) / compared);
  const bool all_measured = report_.measured == report_.compared;
  set(ShadowMeasure::kMeanDifference, all_measured ? report_.sum_of_differences / compared : kUnknown);
  set(ShadowMeasure::kLargestDifference, all_measured ? report_.largest_difference : kUnknown);
  set(ShadowMeasure::kP50, times_.size() > 0 ? times_.RatioAt(kMedian) : kUnknown);
  set(ShadowMeasure::kP99, times_.size() > 0 ? times_.RatioAt(kSlowest) : kUnknown);
  return measures;
}

bool Shadow::DecideIfDue(absl::Time now) {
  if (!rule_.promote || report_.decision || adopted_) return false;
  if (!IsDue(*rule_.promote, report_.compared, times_.size())) return false;
  report_.decision = Decide(*rule_.promote, Measures(), now);
  untold_ = true;
  if (report_.decision->promoted) promoted_ = true;
  if (metrics_ != nullptr) metrics_->SetDecision(report_.decision->promoted);
  return true;
}

void Shadow::Adopt(std::optional<GateDecision> earlier, const std::shared_ptr<const ModelIdentity>& shadow) {
  absl::MutexLock lock(&mutex_);
  StartReport(shadow);
  has_adopted_ = true;
  adopted_ = std::move(earlier);
  const std::optional<GateDecision>& decision = Decision();
  const std::optional<bool> promoted = decision ? std::optional(decision->promoted) : std::nullopt;
  promoted_ = promoted.value_or(false);
  ShowPromotion();
  if (rule_.promote && metrics_ != nullptr) metrics_->SetDecision(promoted);
}

void Shadow::ShowPromotion() {
  if (!rule_.promote) return;
  shown_compared_ = report_.compared;
  shown_timed_ = times_.size();
  const std::optional<GateDecision>& decision = Decision();
  const GateDecision* const shown = shown_decision_;
  if (!decision) {
    shown_decision_ = nullptr;
  } else if (shown == nullptr || shown->at != decision->at || shown->promoted != decision->promoted) {
    shown_decision_ = &decisions_.emplace_back(*decision);
  }
}

std::optional<PromotionState> Shadow::Promotion() const {
  if (!rule_.promote) return std::nullopt;
  PromotionState state = {
      .rule = rule_.promote->text, .replaces = rule_.promote->replaces, .shadow = rule_.version};
  if (const GateDecision* const decision = shown_decision_; decision != nullptr) {
    state.promoted = decision->promoted;
    state.reason = decision->reason;
  } else {
    state.reason = ProgressOf(*rule_.promote, shown_compared_, shown_timed_);
  }
  return state;
}

std::optional<GateDecision> Shadow::TakeDecision() {
  absl::MutexLock lock(&mutex_);
  if (!std::exchange(untold_, false)) return std::nullopt;
  return report_.decision;
}

}  // namespace saccade::server
