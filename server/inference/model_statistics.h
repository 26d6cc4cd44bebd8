// Statistics of the models for clients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/catalog/catalog.h"
#include "server/metrics/cache_metrics.h"
#include "server/metrics/model_usage.h"

namespace saccade::server {

struct ModelStatistics {
  std::string model;
  int64_t version = 0;
  ModelUsage usage;
  // Zero unless the model's answers are cached.
  CacheTotals cache;
};

// The statistics of all ready versions, restricted to `model` and `version` where they are not empty;
// `version` is written as in a request. NOT_FOUND or UNAVAILABLE if the named model or version is missing;
// errors of ModelTable::VersionOf. Thread-safe.
absl::StatusOr<std::vector<ModelStatistics>> StatisticsOf(const Catalog& catalog, absl::string_view model,
                                                          absl::string_view version);

}  // namespace saccade::server
