// Renders metrics for scrapers: in Prometheus' text format 0.0.4, byte for byte as prometheus-cpp writes it,
// and in OpenMetrics 1.0.0, which has exemplars. Both have the same samples with the same names and labels,
// so a Prometheus that switches format continues the same series.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

#include "server/metrics/exemplars.h"
#include "server/metrics/exposition_format.h"

namespace saccade::server {

// Copies of the metrics at one point in time.
struct Scraped {
  std::vector<prometheus::MetricFamily> families = {};
  // By the family's name.
  std::map<std::string, ExemplarsByLabels> exemplars = {};
};

std::string Render(const Scraped& scraped, ExpositionFormat format);

}  // namespace saccade::server
