// CUDA graphs by way of the plugin: what is enqueued once can be replayed by one call.
#pragma once

#include <functional>
#include <memory>

namespace saccade::kernels {

// For one thread at a time, always with the same current stream, which is not the default one.
class CudaGraph {
 public:
  CudaGraph() = default;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  virtual ~CudaGraph() = default;

  // Runs `work` twice as it is, so that libraries choose their algorithms and take their workspaces, and a
  // third time to record what it enqueues; that last time nothing is computed. What `work` allocates stays
  // allocated, at the same addresses, as long as the graph lives. `work` must not wait for the GPU.
  virtual void Record(const std::function<void()>& work) = 0;

  // Enqueues what was recorded. REQUIRES: Record has returned.
  virtual void Replay() = 0;
};

// Throws c10::Error, as both functions do, if the plugin is not loaded or CUDA refuses.
std::unique_ptr<CudaGraph> MakeCudaGraph(int gpu);

}  // namespace saccade::kernels
