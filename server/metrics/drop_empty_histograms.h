// Keeps the scrape of a daemon with many models small.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace saccade::server {

// Removes the empty histograms of the model versions that have had no request, which are most of the text
// that a scrape has of such a model. Their counters and gauges stay.
void DropEmptyHistograms(std::vector<prometheus::MetricFamily>& families);

}  // namespace saccade::server
