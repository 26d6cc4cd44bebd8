#include "server/metrics/shadow_metrics.h"

#include <cmath>
#include <string>
#include <vector>

#include "server/metrics/model_metrics.h"

namespace saccade::server {

struct ShadowMetrics::Series {
  using Counter = ::saccade::server::Series<prometheus::Counter>;

  Counter compared;
  Counter agreed;
  Counter equal;
  Counter failed;
  Counter timed_passes;
  std::vector<Counter> dropped;  // by ShadowLoss
  // By kGateStates; empty without a rule for promotions.
  std::vector<::saccade::server::Series<prometheus::Gauge>> gate;
  ::saccade::server::Series<prometheus::Histogram> difference;
  std::shared_ptr<Exemplars> exemplars;
};

ShadowMetrics::ShadowMetrics(Families* families, std::string_view model, int64_t version, int64_t shadow,
                             bool gated) {
  const prometheus::Labels labels = {{"model", std::string(model)},
                                     {"version", std::to_string(version)},
                                     {"shadow", std::to_string(shadow)}};
  SaccadeFamilies& ours = families->ours;
  series_ = std::make_unique<Series>(Series{ours.shadow_compared.Get(labels),
                                            ours.shadow_agreed.Get(labels),
                                            ours.shadow_equal.Get(labels),
                                            ours.shadow_failed.Get(labels),
                                            ours.shadow_timed_passes.Get(labels),
                                            {},
                                            {},
                                            ours.shadow_difference.Get(labels),
                                            families->shadow_exemplars.Get(labels)});
  for (const std::string_view reason : kShadowLosses) {
    prometheus::Labels of_reason = labels;
    of_reason["reason"] = std::string(reason);
    series_->dropped.push_back(ours.shadow_dropped.Get(of_reason));
  }
  if (!gated) return;
  for (const std::string_view state : kGateStates) {
    prometheus::Labels of_state = labels;
    of_state["state"] = std::string(state);
    series_->gate.push_back(ours.shadow_promotion.Get(of_state));
  }
  SetDecision(std::nullopt);
}

ShadowMetrics::~ShadowMetrics() = default;

void ShadowMetrics::AddCompared(bool equal, bool agreed, double difference, const SampledSpan& request,
                                absl::Time now) {
  series_->compared->Increment();
  if (agreed) series_->agreed->Increment();
  if (equal) series_->equal->Increment();
  if (!std::isfinite(difference)) return;
  series_->difference->Observe(difference);
  if (request.id != 0) series_->exemplars->Keep({request, difference, now});
}

void ShadowMetrics::AddFailed() {
  series_->compared->Increment();
  series_->failed->Increment();
}

void ShadowMetrics::SetDecision(std::optional<bool> promoted) {
  std::string_view now = "measuring";
  if (promoted) now = *promoted ? "promoted" : "refused";
  for (size_t state = 0; state < kGateStates.size(); ++state)
    series_->gate.at(state)->Set(kGateStates.at(state) == now ? 1 : 0);
}

void ShadowMetrics::AddDropped(ShadowLoss why, int64_t requests) {
  series_->dropped[static_cast<size_t>(why)]->Increment(static_cast<double>(requests));
}

void ShadowMetrics::AddTimedPass() { series_->timed_passes->Increment(); }

}  // namespace saccade::server
