// Compares the answers of a model's version with those of its shadow version, which computes copies of some
// requests. Chooses the requests, limits the copies in flight, and counts the results.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/served_by.h"
#include "server/core/shadow_rule.h"
#include "server/core/trace_id.h"
#include "server/metrics/shadow_metrics.h"
#include "server/shadow/compare.h"
#include "server/shadow/differing.h"
#include "server/shadow/gate.h"
#include "server/shadow/pass_times.h"

namespace saccade::server {

// Results of the comparison since the answering version or its shadow version was loaded, whichever was
// later. `dropped` counts since the answering version was loaded.
struct ShadowReport {
  ShadowRule rule;
  int64_t compared = 0;
  int64_t agreed = 0;
  int64_t equal = 0;
  int64_t failed = 0;
  // By ShadowLoss.
  std::array<int64_t, kShadowLosses.size()> dropped = {};
  // Copies that are being computed, and the memory of their inputs and of the answers they are compared with.
  int64_t in_flight = 0;
  int64_t in_flight_bytes = 0;
  // The task of the compared answers; empty until the first comparison.
  std::string_view task = {};
  // Number of compared answers whose difference is finite, and the sum and the largest of those differences.
  int64_t measured = 0;
  double sum_of_differences = 0;
  double largest_difference = 0;
  // Number of timed passes, and of the requests in them. p50 and p99 are that quantile of the shadow
  // version's times, divided by the same quantile of the answering version's; 0 if no pass was timed.
  int64_t timed = 0;
  int64_t timed_requests = 0;
  double p50 = 0;
  double p99 = 0;
  // The latest request whose answers do not agree, or that the shadow version failed; without its picture.
  std::optional<Disagreement> last_disagreement = std::nullopt;
  // The requests whose answers differ most, the worst first. Empty without a rule for promotions.
  std::vector<Disagreement> differing = {};
  // Whether the shadow version is promoted; nullopt without a rule, and until the decision is made.
  std::optional<GateDecision> decision = std::nullopt;
};

// Thread-safe. Shared by the answering version and by the copies of its requests, which may outlive it.
class Shadow {
 public:
  // Maximum number of copies in flight, and of the bytes of their inputs and answers. If the rule names p50
  // or p99, the copies of only one pass are in flight instead: copies of another pass could be computed
  // together with them, and that pass could not be compared with the original one.
  static constexpr int64_t kMaxCopies = 4;
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;

  // The request of which a copy was made.
  struct Original {
    std::string id = {};
    SampledSpan span = {};
    // Identity of the version that computes the copy.
    std::shared_ptr<const ModelIdentity> shadow = nullptr;
    // The file that the client sent; null if it is not kept.
    std::shared_ptr<const std::string> picture = nullptr;
    // The pass that computed the request; batch_size is 0 if it was not timed. If passes are copied whole,
    // only the first copied request of each pass has the time, so that the pass counts once.
    PassTime pass = {};
  };

  // `metrics` and `decided` may be null. `decided` is called when the decision is made, on a thread that runs
  // only on idle cores, so it must take no lock.
  Shadow(const ShadowRule& rule, std::unique_ptr<ShadowMetrics> metrics,
         std::function<void()> decided = nullptr);

  const ShadowRule& rule() const { return rule_; }

  // Whether passes are copied whole, because the rule for promotions compares their times.
  bool copies_passes() const { return copies_passes_; }

  // Decides at random whether to copy a request that was just answered, or all `requests` of a pass.
  // `waiting` is true if requests of the answering version wait for a pass: chosen requests are then counted
  // as dropped, and the result is false. Always false while the decision is that the shadow version is
  // promoted.
  bool Wants(bool waiting, int64_t requests = 1);

  // Whether copied requests keep their pictures, which are shown if the answers differ.
  bool wants_pictures() const { return rule_.promote.has_value(); }

  // Reserves room for the copies of `requests` requests, of `bytes` bytes in all. Without room, counts them
  // as dropped and returns false. After true, call Leave() once, with the same values, when their memory is
  // free.
  bool Enter(int64_t bytes, int64_t requests = 1);
  void Leave(int64_t bytes, int64_t requests = 1);
  // Compares the answers and counts the result, or counts the copy as dropped if another load than that of
  // the last Adopt() computed it. Reads both answers completely.
  void EndAnswered(const Original& original, const ComparedAnswer& answer, const ComparedAnswer& of_shadow,
                   const PassTime& pass_of_shadow, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a copy that ended with the error `why`: as dropped if the shadow version did not compute it (a
  // full queue, for example) or if another load than that of the last Adopt() computed it, otherwise as
  // failed.
  void EndFailed(const Original& original, const absl::Status& why, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts requests of which no copy could be made.
  void Drop(ShadowLoss why, int64_t requests = 1);

  ShadowReport Report() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The state of the promotion; nullopt without a rule. Takes no lock, because threads that run only on idle
  // cores may hold the mutex for long, and a list of models must not wait for them.
  std::optional<PromotionState> Promotion() const;

  // Sets the decision that was made earlier about the same files, so that no new one is made; nullopt if
  // there is none. Called whenever the model's versions were loaded or its files were read again, and the
  // rule applies. If `shadow`, the load of the shadow version, is another one than was compared before, the
  // trial begins anew, also after a promotion. From the first call on, only copies of that load are compared:
  // those of an earlier load may end late.
  void Adopt(std::optional<GateDecision> earlier, const std::shared_ptr<const ModelIdentity>& shadow)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the decision that this object made, on the first call after it was made; nullopt otherwise.
  std::optional<GateDecision> TakeDecision() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Whether copies that this load of the shadow version computed are compared.
  bool IsCompared(const std::shared_ptr<const ModelIdentity>& shadow) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !has_adopted_ || shadow == compared_with_;
  }
  // Begins a new report if `shadow` is another load of the shadow version than the one compared before.
  void StartReport(const std::shared_ptr<const ModelIdentity>& shadow) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records a request whose answers do not agree.
  void NoteDisagreement(const Original& original, Disagreement found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  GateMeasures Measures() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The decision that was made or adopted.
  const std::optional<GateDecision>& Decision() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return report_.decision ? report_.decision : adopted_;
  }
  // Makes the decision if there is a rule, enough was compared and timed, and no decision was made before.
  // Returns whether it made one.
  bool DecideIfDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes the report's counts and decision for Promotion().
  void ShowPromotion() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShadowRule rule_;
  const bool copies_passes_;
  const std::unique_ptr<ShadowMetrics> metrics_;
  const std::function<void()> decided_;
  // Whether no requests are copied because the shadow version was promoted.
  std::atomic<bool> promoted_{false};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> in_flight_bytes_{0};
  std::array<std::atomic<int64_t>, kShadowLosses.size()> dropped_ = {};
  // For Promotion().
  std::atomic<int64_t> shown_compared_{0};
  std::atomic<int64_t> shown_timed_{0};
  // One of `decisions_`; null until it is decided.
  std::atomic<const GateDecision*> shown_decision_{nullptr};
  // Taken by the shadow version's threads, which run only on idle cores and may hold it for long. Threads
  // that compute requests for clients never take it.
  mutable absl::Mutex mutex_;
  // The report without the values that Report() adds from the other members.
  ShadowReport report_ ABSL_GUARDED_BY(mutex_);
  PassTimes times_ ABSL_GUARDED_BY(mutex_);
  Differing differing_ ABSL_GUARDED_BY(mutex_);
  // The decision that was passed to Adopt().
  std::optional<GateDecision> adopted_ ABSL_GUARDED_BY(mutex_);
  // Whether Adopt() was called.
  bool has_adopted_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether TakeDecision() has yet to return the report's decision.
  bool untold_ ABSL_GUARDED_BY(mutex_) = false;
  // Every decision that shown_decision_ has pointed to, because a reader may still read an earlier one. At
  // most one for each load of a version and for each rule.
  std::deque<GateDecision> decisions_ ABSL_GUARDED_BY(mutex_);
  // The load of the shadow version that the report is about; another load begins a new report.
  std::shared_ptr<const ModelIdentity> compared_with_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
