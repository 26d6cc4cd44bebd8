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
  std::vector<Counter> dropped;  // by ShadowLoss
  ::saccade::server::Series<prometheus::Histogram> difference;
  std::shared_ptr<Exemplars> exemplars;
};

ShadowMetrics::ShadowMetrics(Families* families, std::string_view model, int64_t version, int64_t shadow) {
  const prometheus::Labels labels = {{"model", std::string(model)},
                                     {"version", std::to_string(version)},
                                     {"shadow", std::to_string(shadow)}};
  SaccadeFamilies& ours = families->ours;
  series_ = std::make_unique<Series>(Series{ours.shadow_compared.Get(labels),
                                            ours.shadow_agreed.Get(labels),
                                            ours.shadow_equal.Get(labels),
                                            ours.shadow_failed.Get(labels),
                                            {},
                                            ours.shadow_difference.Get(labels),
                                            families->shadow_exemplars.Get(labels)});
  for (const std::string_view reason : kShadowLosses) {
    prometheus::Labels of_reason = labels;
    of_reason["reason"] = std::string(reason);
    series_->dropped.push_back(ours.shadow_dropped.Get(of_reason));
  }
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

void ShadowMetrics::AddDropped(ShadowLoss why) { series_->dropped[static_cast<size_t>(why)]->Increment(); }

}  // namespace saccade::server
