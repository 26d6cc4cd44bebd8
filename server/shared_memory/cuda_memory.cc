#include "server/shared_memory/cuda_memory.h"

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

absl::Status CheckGpu(const SharedGpus& gpus, int64_t gpu) {
  if (gpu >= 0 && gpu < gpus.count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("device_id is ", gpu, "; expected 0 to ", gpus.count - 1,
                                                 ", the numbers of the GPUs that saccaded finds"));
}

absl::Status CheckHandle(absl::string_view handle) {
  if (handle.size() == kernels::kCudaIpcHandleBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("raw_handle has ", handle.size(), " bytes; expected the ", kernels::kCudaIpcHandleBytes,
                   " of a cudaIpcMemHandle_t, as cudaIpcGetMemHandle makes it"));
}

constexpr absl::string_view kGpuFailed =
    "; the GPU has failed, and saccaded cannot use it any more: restart saccaded";

absl::Status CopyFailed(absl::string_view what, const kernels::CudaIpcOutcome& failed) {
  return absl::InternalError(absl::StrCat(
      "cannot ", what, " CUDA shared memory: ", failed.why,
      failed.gpu_failed ? kGpuFailed : "; keep the memory allocated until its region is unregistered"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaMemory>> CudaMemory::Open(const SharedGpus& gpus, int64_t gpu,
                                                             absl::string_view handle, uint64_t size) {
  if (absl::Status there = CheckGpu(gpus, gpu); !there.ok()) return there;
  if (absl::Status whole = CheckHandle(handle); !whole.ok()) return whole;
  kernels::OpenedCudaMemory opened;
  const kernels::CudaIpcOutcome outcome = gpus.ipc->open(static_cast<int>(gpu), handle.data(), &opened);
  if (outcome.why != nullptr && outcome.gpu_failed) {
    return absl::InternalError(
        absl::StrCat("raw_handle cannot be opened on GPU ", gpu, ": ", outcome.why, kGpuFailed));
  }
  if (outcome.why != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "raw_handle cannot be opened on GPU ", gpu, ": ", outcome.why,
        "; expected the handle of memory that another process on this machine allocated by cudaMalloc, and "
        "has not freed; in containers, both processes need one PID namespace"));
  }
  // Closes the memory if it is refused below.
  auto memory = std::unique_ptr<CudaMemory>(new CudaMemory(*gpus.ipc, opened));
  if (opened.gpu != gpu) {
    return absl::InvalidArgumentError(absl::StrCat("device_id is ", gpu, ", and the memory is on GPU ",
                                                   opened.gpu,
                                                   " as saccaded numbers them; send that number"));
  }
  if (size > opened.size) {
    return absl::InvalidArgumentError(absl::StrCat("byte_size ", size,
                                                   " exceeds the memory behind raw_handle, which has ",
                                                   opened.size, " bytes; send at most these"));
  }
  return memory;
}

CudaMemory::~CudaMemory() { ipc_.close(opened_.block); }

absl::Status CudaMemory::CheckRange(uint64_t offset, size_t size) const {
  if (size <= opened_.size && offset <= opened_.size - size) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the CUDA shared memory has ", opened_.size, " bytes; ",
                                                    size, " from ", offset, " are not all in it"));
}

absl::Status CudaMemory::Read(uint64_t offset, size_t size, char* to) const {
  if (absl::Status inside = CheckRange(offset, size); !inside.ok() || size == 0) return inside;
  const kernels::CudaIpcOutcome outcome = ipc_.read(opened_.block, offset, size, to);
  return outcome.why == nullptr ? absl::OkStatus() : CopyFailed("read", outcome);
}

absl::Status CudaMemory::Write(uint64_t offset, absl::string_view bytes) const {
  if (absl::Status inside = CheckRange(offset, bytes.size()); !inside.ok() || bytes.empty()) return inside;
  const kernels::CudaIpcOutcome outcome = ipc_.write(opened_.block, offset, bytes.size(), bytes.data());
  return outcome.why == nullptr ? absl::OkStatus() : CopyFailed("write", outcome);
}

}  // namespace saccade::server
