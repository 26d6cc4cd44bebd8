#include "models/tasks/restore.h"

#include <c10/core/InferenceMode.h>

#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

TaskResult RestoreOne(const Description& description, const at::Tensor& volume,
                      const Progress::Report& report, const RestorationNetwork& network) {
  if (!AllFinite(volume)) return NotFiniteInput();
  at::Tensor restored;
  try {
    restored = network(volume.contiguous(), report).contiguous();
  } catch (const Unwanted&) {
    return Failure{"the restoration was cancelled: no client waits for its result"};
  }
  if (!AllFinite(restored)) return NotFiniteOutput(description.architecture, "a value");
  const auto* values = restored.const_data_ptr<float>();
  return Restoration{.depth = restored.size(0),
                     .height = restored.size(1),
                     .width = restored.size(2),
                     .values = {values, values + restored.numel()}};
}

}  // namespace

std::vector<TaskResult> Restore(const Description& description, const Batch& batch,
                                const RestorationNetwork& network) {
  const c10::InferenceMode inference;
  CheckBatch(description, batch);
  std::vector<TaskResult> results;
  results.reserve(batch.placements.size());
  for (size_t i = 0; i < batch.placements.size(); ++i) {
    Progress::Report report;
    if (batch.progress) report = [&](double done) { return batch.progress(i, done); };
    results.push_back(RestoreOne(description, batch.pixels[static_cast<int64_t>(i)][0], report, network));
  }
  return results;
}

}  // namespace saccade::models
