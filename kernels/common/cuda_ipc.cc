// The plugin's side of cuda_ipc.h.
#include "kernels/common/cuda_ipc.h"

#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "kernels/common/sticky_errors.h"

namespace saccade::kernels {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == kCudaIpcHandleBytes);

// Memory that is open. Created and destroyed while its GPU is the thread's device.
struct IpcBlock {
  IpcBlock() = default;
  IpcBlock(const IpcBlock&) = delete;
  IpcBlock& operator=(const IpcBlock&) = delete;
  ~IpcBlock() {
    if (stream != nullptr) cudaStreamDestroy(stream);
    if (address != nullptr) cudaIpcCloseMemHandle(address);
    // LibTorch would report an error of these calls as one of a later launch.
    cudaGetLastError();
  }

  // The GPU for which the handle was opened.
  int gpu = 0;
  void* address = nullptr;
  uint64_t size = 0;
  // A stream of its own: copies neither wait for models nor disturb the recording of a graph.
  cudaStream_t stream = nullptr;
};

CudaIpcOutcome FailedWith(cudaError_t error) { return {cudaGetErrorString(error), IsStickyError(error)}; }

// Runs `work` with `gpu` as the thread's device. Clears the thread's last error, as ~IpcBlock() does.
template <typename Work>
CudaIpcOutcome OnGpu(int gpu, const Work& work) {
  try {
    const c10::cuda::CUDAGuard device(static_cast<c10::DeviceIndex>(gpu));
    const cudaError_t error = work();
    if (error == cudaSuccess) return {};
    cudaGetLastError();
    return FailedWith(error);
  } catch (const std::bad_alloc&) {
    return {"out of memory"};
  } catch (const std::exception&) {
    const cudaError_t error = cudaGetLastError();
    return {"the GPU cannot be selected", IsStickyError(error)};
  }
}

// Finds the allocation around `address`. The runtime has no function for it.
cudaError_t FindAllocation(const void* address, uintptr_t* begin, size_t* size) {
  using AddressRange = int (*)(unsigned long long*, size_t*, unsigned long long);
  static const auto range = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<AddressRange>(driver == nullptr ? nullptr
                                                            : dlsym(driver, "cuMemGetAddressRange_v2"));
  }();
  unsigned long long base = 0;
  if (range == nullptr || range(&base, size, reinterpret_cast<uintptr_t>(address)) != 0)
    return cudaErrorNotSupported;
  *begin = static_cast<uintptr_t>(base);
  return cudaSuccess;
}

cudaError_t OpenBlock(const void* handle, IpcBlock* block, OpenedCudaMemory* opened) {
  cudaIpcMemHandle_t ipc;
  std::memcpy(&ipc, handle, sizeof(ipc));
  cudaError_t error = cudaIpcOpenMemHandle(&block->address, ipc, cudaIpcMemLazyEnablePeerAccess);
  if (error != cudaSuccess) {
    block->address = nullptr;
    return error;
  }
  cudaPointerAttributes attributes{};
  error = cudaPointerGetAttributes(&attributes, block->address);
  if (error != cudaSuccess) return error;
  if (attributes.type != cudaMemoryTypeDevice) return cudaErrorInvalidDevicePointer;
  uintptr_t begin = 0;
  size_t size = 0;
  error = FindAllocation(block->address, &begin, &size);
  if (error != cudaSuccess) return error;
  block->size = begin + size - reinterpret_cast<uintptr_t>(block->address);
  error = cudaStreamCreateWithFlags(&block->stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) {
    block->stream = nullptr;
    return error;
  }
  opened->gpu = attributes.device;
  opened->size = block->size;
  return cudaSuccess;
}

CudaIpcOutcome Open(int gpu, const void* handle, OpenedCudaMemory* opened) {
  return OnGpu(gpu, [&] {
    auto block = std::make_unique<IpcBlock>();
    block->gpu = gpu;
    const cudaError_t error = OpenBlock(handle, block.get(), opened);
    if (error == cudaSuccess) opened->block = block.release();
    return error;
  });
}

void Close(void* opened) {
  auto* const block = static_cast<IpcBlock*>(opened);
  // If its GPU is lost, the block is not freed: its destructor's calls would reach another GPU.
  OnGpu(block->gpu, [block] {
    delete block;
    return cudaSuccess;
  });
}

cudaError_t CopyOn(cudaStream_t stream, void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(to, from, size, kind, stream);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

// The address of `size` bytes at `offset` of the block; null if they are not all in it.
char* Within(const IpcBlock& block, uint64_t offset, size_t size) {
  if (size > block.size || offset > block.size - size) return nullptr;
  return static_cast<char*>(block.address) + offset;
}

CudaIpcOutcome Read(void* opened, uint64_t offset, size_t size, void* to) {
  const IpcBlock& block = *static_cast<const IpcBlock*>(opened);
  const char* const from = Within(block, offset, size);
  if (from == nullptr) return FailedWith(cudaErrorInvalidValue);
  return OnGpu(block.gpu, [&] { return CopyOn(block.stream, to, from, size, cudaMemcpyDeviceToHost); });
}

CudaIpcOutcome Write(void* opened, uint64_t offset, size_t size, const void* from) {
  const IpcBlock& block = *static_cast<const IpcBlock*>(opened);
  char* const to = Within(block, offset, size);
  if (to == nullptr) return FailedWith(cudaErrorInvalidValue);
  return OnGpu(block.gpu, [&] { return CopyOn(block.stream, to, from, size, cudaMemcpyHostToDevice); });
}

}  // namespace

// The exported symbol that LoadCudaIpc() looks up.
extern "C" const CudaIpc* saccade_cuda_ipc() {
  static constexpr CudaIpc kFunctions = {.open = Open, .close = Close, .read = Read, .write = Write};
  return &kFunctions;
}

}  // namespace saccade::kernels
