// What the models have done, for those who ask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/metrics/cache_metrics.h"
#include "server/metrics/model_usage.h"
#include "server/pipeline/catalog.h"

namespace saccade::server {

struct ModelStatistics {
  std::string model;
  int64_t version = 0;
  ModelUsage usage;
  // Zeros unless answers are kept.
  CacheTotals cache;
};

// Of every version that is ready; of the model and version that are named, where they are not empty; the
// version is written as in a request. NOT_FOUND or UNAVAILABLE if what is named is not there;
// ModelTable::VersionOf's errors. Thread-safe.
absl::StatusOr<std::vector<ModelStatistics>> StatisticsOf(const Catalog& catalog, absl::string_view model,
                                                          absl::string_view version);

}  // namespace saccade::server
