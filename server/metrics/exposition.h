// What was counted, as scrapers read it: Prometheus' text format 0.0.4, byte for byte as prometheus-cpp
// writes it, and OpenMetrics 1.0.0, which has exemplars. Both have the same samples under the same names and
// labels, so that a Prometheus that changes from one to the other goes on with the same series.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

#include "server/metrics/exemplars.h"
#include "server/metrics/exposition_format.h"

namespace saccade::server {

// Copies, which nobody changes.
struct Scraped {
  std::vector<prometheus::MetricFamily> families = {};
  // By family.
  std::map<std::string, ExemplarsByLabels> exemplars = {};
};

std::string Render(const Scraped& scraped, ExpositionFormat format);

}  // namespace saccade::server
