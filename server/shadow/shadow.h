// Compares the answers of a version of a model with those of another one, its shadow, which computes copies
// of some requests. Chooses the requests, bounds the copies, and counts what was found.
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

// What was found since the version, or its shadow, was loaded. What was dropped counts since the version was.
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
  // Empty until two answers were compared.
  std::string_view task = {};
  // Of the answers that can be measured: how many, and the sum and the largest of their differences.
  int64_t measured = 0;
  double sum_of_differences = 0;
  double largest_difference = 0;
  // Passes that were timed, the requests in them, and quantiles of the shadow version's times over the
  // other's; 0 without.
  int64_t timed = 0;
  int64_t timed_requests = 0;
  double p50 = 0;
  double p99 = 0;
  // The latest request whose answers do not agree, without its picture.
  std::optional<Disagreement> last_disagreement = std::nullopt;
  // Only with a rule for promotions: those that differ most, the worst first.
  std::vector<Disagreement> differing = {};
  // Nullopt without a rule, and until it is decided.
  std::optional<GateDecision> decision = std::nullopt;
};

// Thread-safe. Shared by the version and by its copies, which may outlive it.
class Shadow {
 public:
  // Copies that are in flight at the same time, and their memory. With a rule that names times only those of
  // one pass: others would share the shadow version's pass with them, which could not be timed then.
  static constexpr int64_t kMaxCopies = 4;
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;

  // The request of which a copy was made.
  struct Original {
    std::string id = {};
    SampledSpan span = {};
    // Of the version that computes the copy.
    std::shared_ptr<const ModelIdentity> shadow = nullptr;
    // Null if it is not kept.
    std::shared_ptr<const std::string> picture = nullptr;
    // What it took to compute it; not timed unless the request stands for all of its pass.
    PassTime pass = {};
  };

  // `metrics` may be null. `decided` is called once there is a decision, on a thread that runs only on idle
  // cores: it must take no lock. It may be null.
  Shadow(const ShadowRule& rule, std::unique_ptr<ShadowMetrics> metrics,
         std::function<void()> decided = nullptr);

  const ShadowRule& rule() const { return rule_; }

  // Whether passes are copied whole, because the rule for promotions compares their times.
  bool copies_passes() const { return copies_passes_; }

  // Chooses by chance whether a request that was just answered is copied, or all `requests` of a pass.
  // `waiting` tells that requests of the version wait for a pass, in which case those that were chosen are
  // dropped. Of a version that another one has taken the place of, none is.
  bool Wants(bool waiting, int64_t requests = 1);

  // Whether pictures of copied requests are to be kept, for those that differ.
  bool wants_pictures() const { return rule_.promote.has_value(); }

  // Makes room for a copy of this size, or for the copies of a pass that have it together; or counts them as
  // dropped and returns false. After true, Leave() must be called once, when their memory is free again.
  bool Enter(int64_t bytes, int64_t requests = 1);
  void Leave(int64_t bytes, int64_t requests = 1);
  // Compares the answers. Takes as long as reading both.
  void EndAnswered(const Original& original, const ComparedAnswer& answer, const ComparedAnswer& of_shadow,
                   const PassTime& pass_of_shadow, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // The shadow version did not answer. Errors that say nothing about it, such as a full queue, count as
  // dropped.
  void EndFailed(const Original& original, const absl::Status& why, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts requests of which no copy could be made.
  void Drop(ShadowLoss why, int64_t requests = 1);

  ShadowReport Report() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What the rule has come to; nullopt without one. Takes no lock, so that a list of models does not wait for
  // threads that run only on idle cores.
  std::optional<PromotionState> Promotion() const;

  // Called when the versions were loaded, or looked at again: what was decided earlier about the same files,
  // and is not decided again; nullopt if nothing was.
  void Adopt(std::optional<GateDecision> earlier) ABSL_LOCKS_EXCLUDED(mutex_);
  // What was decided here, once: later calls return nullopt.
  std::optional<GateDecision> TakeDecision() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Begins another report if the shadow version is another load than before.
  void StartReport(const Original& original) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the request down as one whose answers do not agree.
  void NoteDisagreement(const Original& original, Disagreement found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  GateMeasures Measures() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Decides, if there is a rule, it is time, and nothing was decided. Returns whether it has.
  bool DecideIfDue(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the report's counts and decision what Promotion() returns.
  void ShowPromotion() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShadowRule rule_;
  const bool copies_passes_;
  const std::unique_ptr<ShadowMetrics> metrics_;
  const std::function<void()> decided_;
  std::atomic<bool> promoted_{false};
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> in_flight_bytes_{0};
  std::array<std::atomic<int64_t>, kShadowLosses.size()> dropped_ = {};
  // For Promotion().
  std::atomic<int64_t> shown_compared_{0};
  std::atomic<int64_t> shown_timed_{0};
  // One of `decisions_`; null until it is decided.
  std::atomic<const GateDecision*> shown_decision_{nullptr};
  // Held by the shadow version's threads, which run only on idle cores and may hold it for long: what answers
  // requests never takes it.
  mutable absl::Mutex mutex_;
  // Without what the members above count.
  ShadowReport report_ ABSL_GUARDED_BY(mutex_);
  PassTimes times_ ABSL_GUARDED_BY(mutex_);
  Differing differing_ ABSL_GUARDED_BY(mutex_);
  // What Adopt() brought.
  std::optional<GateDecision> adopted_ ABSL_GUARDED_BY(mutex_);
  // Whether TakeDecision() has yet to return the report's decision.
  bool untold_ ABSL_GUARDED_BY(mutex_) = false;
  // All that were shown, of which a reader may still read an earlier one: at most one for each load of a
  // version and for each rule.
  std::deque<GateDecision> decisions_ ABSL_GUARDED_BY(mutex_);
  // What the report is about: another load of the shadow version begins another report.
  std::shared_ptr<const ModelIdentity> compared_with_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
