// CUDA graphs, implemented by the plugin: work that was recorded once is replayed with one launch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace saccade::kernels {

// Bytes of a GPU's memory. Both are 0 if they are not known.
struct GraphMemory {
  int64_t pool_bytes = 0;  // reserved for all graphs of a memory pool together
  int64_t gpu_bytes = 0;   // all memory of the GPU
};

// A recorded sequence of GPU work. Not thread-safe. Record() and Replay() must run under the same current
// stream, which must not be the default stream.
class CudaGraph {
 public:
  CudaGraph() = default;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  virtual ~CudaGraph() = default;

  // Runs `work` twice normally, so that libraries choose their algorithms and allocate their workspaces, then
  // a third time under capture, which computes nothing. The addresses that `work` allocates stay the graph's
  // as long as it lives, also after `work` has freed them: only graphs made beside it use them too. `work`
  // must not wait for the GPU. Before the capture, LibTorch's caches of all GPUs are emptied, so no other
  // thread may be recording.
  virtual void Record(const std::function<void()>& work) = 0;

  // Enqueues the recorded work. REQUIRES: Record() has returned.
  virtual void Replay() = 0;

  // Returns the memory of the graph's pool. REQUIRES: Record() has returned.
  virtual GraphMemory memory() const { return {}; }
};

// If `beside` is not null, it must be recorded and live until Record() of the new graph has returned: both
// then allocate from one memory pool, so that together they take as much memory as the larger one. They must
// be recorded and replayed on the same stream, and the results of one be copied before the other is replayed.
// Throws c10::Error if the plugin is not loaded. Record() and Replay() throw c10::Error if CUDA fails.
std::unique_ptr<CudaGraph> MakeCudaGraph(int gpu, CudaGraph* beside = nullptr);

}  // namespace saccade::kernels
