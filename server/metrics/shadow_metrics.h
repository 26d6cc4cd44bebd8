// The copies of one version's requests that its shadow version computes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "server/core/trace_id.h"

namespace saccade::server {

struct Families;

// Why a request that was chosen was not compared.
enum class ShadowLoss {
  // Requests of the version itself wait.
  kBusy,
  // Earlier copies are not computed yet.
  kBehind,
  // The copy alone exceeds the memory that copies may take, or there is no memory for it.
  kTooLarge,
  // The shadow version is not ready, or was closed or had no room.
  kUnavailable,
};

// What a rule for promotions has come to.
inline constexpr std::array<std::string_view, 3> kGateStates = {"measuring", "promoted", "refused"};

inline constexpr std::array<std::string_view, 4> kShadowLosses = {"busy", "behind", "too_large",
                                                                  "unavailable"};

// Like ModelMetrics. Created by Metrics::ForShadowOf(). Thread-safe.
class ShadowMetrics {
 public:
  ~ShadowMetrics();

  // `difference` may be infinite. `request` is the span of the request, if it is sampled.
  void AddCompared(bool equal, bool agreed, double difference, const SampledSpan& request, absl::Time now);
  // Also counts as compared.
  void AddFailed();
  void AddDropped(ShadowLoss why, int64_t requests);
  // A pass whose time was compared with that of the shadow version's pass over the same requests.
  void AddTimedPass();
  // Whether the shadow version was promoted; nullopt until that is decided. REQUIRES: `gated` was true.
  void SetDecision(std::optional<bool> promoted);

 private:
  friend class Metrics;
  struct Series;
  ShadowMetrics(Families* families, std::string_view model, int64_t version, int64_t shadow, bool gated);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
