// The plugin's side of cuda_graph.h.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

#include "kernels/common/cuda_graph.h"

namespace saccade::kernels {
namespace {

// Held while a capture begins and while a graph is destroyed. Both change the set of graphs that LibTorch's
// random number generator of the GPU keeps, which has no lock. Replays do not change it.
std::mutex& GraphSetMutex() {
  static std::mutex mutex;
  return mutex;
}

class RecordedGraph : public CudaGraph {
 public:
  RecordedGraph(int gpu, c10::MempoolId_t pool) : gpu_(static_cast<c10::DeviceIndex>(gpu)), pool_(pool) {
    graph_.emplace();
  }

  // Waits for replays, which use memory that goes with the graph.
  ~RecordedGraph() override {
    if (stream_) {
      try {
        stream_->synchronize();
      } catch (const std::exception& error) {
        TORCH_WARN("CUDA error before a CUDA graph is freed: ", error.what());
      }
    }
    const std::lock_guard lock(GraphSetMutex());
    graph_.reset();
  }

  c10::MempoolId_t pool() const { return pool_; }

  void Record(const std::function<void()>& work) override {
    const c10::cuda::CUDAGuard device(gpu_);
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(gpu_);
    TORCH_CHECK(stream != c10::cuda::getDefaultCUDAStream(gpu_),
                "cannot record a CUDA graph on the default stream; expected a non-default stream: run the "
                "model on its own stream");
    work();
    work();
    stream.synchronize();
    // LibTorch's cache still has the memory of these passes. The capture cannot use it, because it allocates
    // from the graph's pool, and LibTorch does not free its cache for a failed allocation during a capture.
    c10::cuda::CUDACachingAllocator::emptyCache();
    {
      const std::lock_guard lock(GraphSetMutex());
      // In thread-local mode, CUDA calls of other threads do not invalidate the capture.
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    }
    try {
      work();
    } catch (...) {
      EndAfterError();
      throw;
    }
    EndCapture();
    stream_ = stream;
  }

  void Replay() override {
    const c10::cuda::CUDAGuard device(gpu_);
    graph_->replay();
  }

  GraphMemory memory() const override {
    const auto snapshot = c10::cuda::CUDACachingAllocator::snapshot(pool_, /*include_traces=*/false);
    int64_t bytes = 0;
    for (const auto& segment : snapshot.segments) {
      if (segment.device == gpu_ && segment.owner_private_pool_id == pool_)
        bytes += static_cast<int64_t>(segment.total_size);
    }
    return {bytes, static_cast<int64_t>(at::cuda::getDeviceProperties(gpu_)->totalGlobalMem)};
  }

 private:
  struct Graph : at::cuda::CUDAGraph {
    bool capture_ended() const { return capture_ended_; }
  };

  // Takes the stream out of capture mode. Only warns on errors: the original exception is rethrown by the
  // caller.
  void EndAfterError() noexcept {
    try {
      EndCapture();
    } catch (const std::exception& error) {
      TORCH_WARN("cannot end the capture of a CUDA graph: ", error.what());
    }
  }

  // If CUDA invalidated the capture, LibTorch's capture_end() throws before it tells its allocators that the
  // capture has ended. They would keep memory that other streams use until the process ends.
  void EndCapture() {
    try {
      graph_->capture_end();
    } catch (...) {
      if (!graph_->capture_ended()) LeavePool();
      throw;
    }
  }

  // What capture_end() and the graph's reset() would have done with the pool.
  void LeavePool() noexcept {
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(gpu_, pool_);
      c10::cuda::CUDACachingAllocator::releasePool(gpu_, pool_);
    } catch (const std::exception& error) {
      TORCH_WARN("GPU ", static_cast<int>(gpu_),
                 "'s memory may not be freed any more after a capture that failed; restart the process if it "
                 "grows: ",
                 error.what());
    }
    try {
      at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
      host->end_allocate_to_pool(pool_);
      host->release_pool(pool_);
    } catch (const std::exception& error) {
      TORCH_WARN(
          "page-locked memory may not be freed any more after a capture that failed; restart the process if "
          "it grows: ",
          error.what());
    }
  }

  c10::DeviceIndex gpu_;
  c10::MempoolId_t pool_;
  // Where it was recorded; nothing before.
  std::optional<c10::cuda::CUDAStream> stream_;
  // Never empty before the destructor.
  std::optional<Graph> graph_;
};

}  // namespace

// The exported symbol that MakeCudaGraph() looks up.
extern "C" CudaGraph* saccade_make_cuda_graph(int gpu, CudaGraph* beside) {
  const c10::MempoolId_t pool =
      beside == nullptr ? at::cuda::graph_pool_handle() : static_cast<RecordedGraph*>(beside)->pool();
  return new RecordedGraph(gpu, pool);
}

}  // namespace saccade::kernels
