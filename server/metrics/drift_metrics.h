// The drift of one version of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saccade::server {

struct Families;

// Like ModelMetrics. Created by Metrics::ForDriftOf(). Called by one thread at a time.
class DriftMetrics {
 public:
  ~DriftMetrics();

  // What was counted since the model was loaded, and the drift by feature. A feature that was never set is
  // NaN.
  void Set(int64_t items, int64_t repeated, const std::vector<std::pair<std::string, double>>& drift);

 private:
  friend class Metrics;
  struct VersionSeries;
  DriftMetrics(Families* families, std::string_view model, int64_t version,
               const std::vector<std::string>& features);

  std::unique_ptr<VersionSeries> series_;
};

}  // namespace saccade::server
