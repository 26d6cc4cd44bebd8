#include "server/simulation/sim_devices.h"

#include <algorithm>

namespace saccade::server::simulation {

SimDevices::Pass SimDevices::Compute(int model, int /*instance*/,
                                     const std::vector<std::unique_ptr<BatchTask>>& tasks, Nanos /*now*/) {
  const ModelOptions& options = models_[model];
  int64_t pictures = 0;
  Shape shape = {0, 0};
  for (const auto& task : tasks) {
    pictures += task->size();
    shape = Hull(shape, options.shapes[task->bucket()]);
  }
  Nanos took = options.measured.empty() ? options.latency(static_cast<double>(pictures) * shape.area())
                                        : options.Latency(tasks.front()->bucket(), pictures);
  if (jitter_ > 0) took *= 1 + jitter_ * std::clamp(random_.Normal(), -3.0, 3.0);
  return {.took = std::max(Nanos(1), took.Whole()), .ok = true};
}

}  // namespace saccade::server::simulation
