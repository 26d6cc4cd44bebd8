// Compares the answers of a version of a model with those of another one, its shadow, which computes copies
// of some requests. Chooses the requests, bounds the copies, and counts what was found.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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

  // The latest request whose answers do not agree.
  struct Disagreement {
    // As the client named the request; may be empty.
    std::string request = {};
    // 0 if the request is not sampled.
    TraceId trace = {};
    absl::Time at = absl::UnixEpoch();
    // Nullopt if the answers cannot be measured.
    std::optional<double> difference = std::nullopt;
    // The shadow version's error; empty if it answered.
    std::string error = {};
  };
  std::optional<Disagreement> last_disagreement = std::nullopt;
};

// Thread-safe. Shared by the version and by its copies, which may outlive it.
class Shadow {
 public:
  // Copies that are in flight at the same time, and their memory.
  static constexpr int64_t kMaxCopies = 4;
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;

  // The request of which a copy was made.
  struct Original {
    std::string id = {};
    SampledSpan span = {};
    // Of the version that computes the copy.
    std::shared_ptr<const ModelIdentity> shadow = nullptr;
  };

  // `metrics` may be null.
  Shadow(const ShadowRule& rule, std::unique_ptr<ShadowMetrics> metrics)
      : rule_(rule), metrics_(std::move(metrics)), report_{.rule = rule} {}

  const ShadowRule& rule() const { return rule_; }

  // Chooses by chance whether a request that was just answered is copied. `waiting` tells that requests of
  // the version wait for a pass, in which case a chosen request is dropped.
  bool Wants(bool waiting);

  // Makes room for a copy of this size, or counts it as dropped and returns false. After true, Leave() must
  // be called once, when its memory is free again.
  bool Enter(int64_t bytes);
  void Leave(int64_t bytes);
  // Compares the answers. Takes as long as reading both.
  void EndAnswered(const Original& original, const ComparedAnswer& answer, const ComparedAnswer& of_shadow,
                   absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // The shadow version did not answer. Errors that say nothing about it, such as a full queue, count as
  // dropped.
  void EndFailed(const Original& original, const absl::Status& why, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a request for which no copy could be made.
  void Drop(ShadowLoss why);

  ShadowReport Report() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Begins another report if the shadow version is another load than before.
  void StartReport(const Original& original) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShadowRule rule_;
  const std::unique_ptr<ShadowMetrics> metrics_;
  std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> in_flight_bytes_{0};
  std::array<std::atomic<int64_t>, kShadowLosses.size()> dropped_ = {};
  // Held by the shadow version's threads, which run only on idle cores and may hold it for long: what answers
  // requests never takes it.
  mutable absl::Mutex mutex_;
  // Without what the members above count.
  ShadowReport report_ ABSL_GUARDED_BY(mutex_);
  // What the report is about: another load of the shadow version begins another report.
  std::shared_ptr<const ModelIdentity> compared_with_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
