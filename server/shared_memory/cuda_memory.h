// Memory on a GPU that a client's process allocated, and named by its CUDA IPC handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/common/cuda_ipc.h"
#include "server/shared_memory/region_memory.h"

namespace saccade::server {

// The GPUs whose memory can be opened.
struct SharedGpus {
  // Null if there are none.
  const kernels::CudaIpc* ipc = nullptr;
  // They have the numbers from 0 to count - 1.
  int count = 0;
};

class CudaMemory : public RegionMemory {
 public:
  // Opens the memory whose handle is `handle`. Blocks for the driver. INVALID_ARGUMENT if there is no GPU
  // `gpu`, if the handle has another length than CUDA's or CUDA does not open it, or if the memory is on
  // another GPU or smaller than `size`; INTERNAL if the GPU has failed for good. REQUIRES: gpus.ipc is not
  // null.
  static absl::StatusOr<std::unique_ptr<CudaMemory>> Open(const SharedGpus& gpus, int64_t gpu,
                                                          absl::string_view handle, uint64_t size);

  ~CudaMemory() override;

  absl::Status Read(uint64_t offset, size_t size, char* to) const override;
  absl::Status Write(uint64_t offset, absl::string_view bytes) const override;

 private:
  CudaMemory(const kernels::CudaIpc& ipc, const kernels::OpenedCudaMemory& opened)
      : ipc_(ipc), opened_(opened) {}

  // FAILED_PRECONDITION unless the range is in the memory.
  absl::Status CheckRange(uint64_t offset, size_t size) const;

  const kernels::CudaIpc& ipc_;
  const kernels::OpenedCudaMemory opened_;
};

}  // namespace saccade::server
