#include "server/metrics/drop_empty_histograms.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "server/metrics/families.h"

namespace saccade::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

// The labels model and version; empty without them.
using ModelVersion = std::pair<std::string, std::string>;

ModelVersion ModelOf(const ClientMetric& metric) {
  ModelVersion model;
  for (const ClientMetric::Label& label : metric.label) {
    if (label.name == "model") model.first = label.value;
    if (label.name == "version") model.second = label.value;
  }
  return model;
}

std::set<ModelVersion> Unasked(const std::vector<MetricFamily>& families) {
  std::set<ModelVersion> unasked;
  for (const MetricFamily& family : families) {
    if (family.name != kRequestSeconds) continue;
    for (const ClientMetric& metric : family.metric) {
      if (metric.histogram.sample_count == 0) unasked.insert(ModelOf(metric));
    }
  }
  return unasked;
}

}  // namespace

void DropEmptyHistograms(std::vector<MetricFamily>& families) {
  const std::set<ModelVersion> unasked = Unasked(families);
  for (MetricFamily& family : families) {
    if (family.type != prometheus::MetricType::Histogram) continue;
    std::erase_if(family.metric, [&unasked](const ClientMetric& metric) {
      return metric.histogram.sample_count == 0 && unasked.count(ModelOf(metric)) > 0;
    });
  }
}

}  // namespace saccade::server
