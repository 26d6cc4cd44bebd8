#include "server/metrics/drift_metrics.h"

#include <limits>
#include <map>

#include "server/metrics/model_metrics.h"

namespace saccade::server {

struct DriftMetrics::VersionSeries {
  Series<prometheus::Counter> items;
  Series<prometheus::Counter> repeated;
  std::map<std::string, Series<prometheus::Gauge>> drift = {};
  // Values already added to `items` and `repeated`; Set() adds only the difference.
  int64_t counted_items = 0;
  int64_t counted_repeated = 0;
};

DriftMetrics::DriftMetrics(Families* families, std::string_view model, int64_t version,
                           const std::vector<std::string>& features) {
  const prometheus::Labels labels = {{"model", std::string(model)}, {"version", std::to_string(version)}};
  SaccadeFamilies& ours = families->ours;
  series_ = std::make_unique<VersionSeries>(
      VersionSeries{ours.drift_items.Get(labels), ours.drift_repeated.Get(labels)});
  for (const std::string& feature : features) {
    prometheus::Labels of_feature = labels;
    of_feature["feature"] = feature;
    const auto made = series_->drift.emplace(feature, ours.drift.Get(of_feature)).first;
    made->second->Set(std::numeric_limits<double>::quiet_NaN());
  }
}

DriftMetrics::~DriftMetrics() = default;

void DriftMetrics::Set(int64_t items, int64_t repeated,
                       const std::vector<std::pair<std::string, double>>& drift) {
  series_->items->Increment(static_cast<double>(items - series_->counted_items));
  series_->repeated->Increment(static_cast<double>(repeated - series_->counted_repeated));
  series_->counted_items = items;
  series_->counted_repeated = repeated;
  for (const auto& [feature, value] : drift) series_->drift.at(feature)->Set(value);
}

}  // namespace saccade::server
