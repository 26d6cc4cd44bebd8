#include "server/inference/model_statistics.h"

namespace saccade::server {

absl::StatusOr<std::vector<ModelStatistics>> StatisticsOf(const Catalog& catalog, absl::string_view model,
                                                          int64_t version) {
  std::vector<ModelStatistics> statistics;
  for (const ModelSnapshot& listed : catalog.List()) {
    if (!model.empty() && listed.name != model) continue;
    if (version != 0 && listed.version != version) continue;
    const auto ready = catalog.FindReady(listed.name, listed.version);
    if (!ready.ok()) continue;
    statistics.push_back(
        {.model = listed.name, .version = listed.version, .usage = (*ready)->metrics()->Usage()});
  }
  if (!statistics.empty() || model.empty()) return statistics;
  auto missing = catalog.FindReady(model, version);
  if (!missing.ok()) return missing.status();
  // It became ready between the two looks.
  return std::vector<ModelStatistics>{{.model = (*missing)->name(),
                                       .version = (*missing)->version(),
                                       .usage = (*missing)->metrics()->Usage()}};
}

}  // namespace saccade::server
