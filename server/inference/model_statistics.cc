#include "server/inference/model_statistics.h"

namespace saccade::server {
namespace {

ModelStatistics Of(const ServedModel& model) {
  ModelStatistics statistics{
      .model = model.name(), .version = model.version(), .usage = model.metrics()->Usage(), .cache = {}};
  if (model.cache_metrics() != nullptr) statistics.cache = model.cache_metrics()->totals();
  return statistics;
}

}  // namespace

absl::StatusOr<std::vector<ModelStatistics>> StatisticsOf(const Catalog& catalog, absl::string_view model,
                                                          absl::string_view version) {
  const auto number = catalog.VersionOf(model, version);
  if (!number.ok()) return number.status();
  std::vector<ModelStatistics> statistics;
  for (const ModelSnapshot& listed : catalog.List()) {
    if (!model.empty() && listed.name != model) continue;
    if (*number != 0 && listed.version != *number) continue;
    const auto ready = catalog.FindReady(listed.name, listed.version);
    if (!ready.ok()) continue;
    statistics.push_back(Of(**ready));
  }
  if (!statistics.empty() || model.empty()) return statistics;
  auto missing = catalog.FindReady(model, *number);
  if (!missing.ok()) return missing.status();
  // The model became ready between the two look-ups.
  return std::vector<ModelStatistics>{Of(**missing)};
}

}  // namespace saccade::server
