// The CUDA side of the binding. Part of the plugin, and registered when the plugin is opened.
#include "kernels/expatt/expatt_cuda.h"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <atomic>
#include <memory>
#include <tuple>
#include <utility>

#include "kernels/common/cuda_run.h"
#include "kernels/expatt/expatt_binding.h"
#include "kernels/expatt/expatt_maps.h"

namespace saccade::kernels {
namespace {

// A map in memory of the caching allocator, which was allocated and is filled on the stream that was current.
class CudaStoredMap : public ExpattStoredMemory {
 public:
  CudaStoredMap(const char* op, const ExpattProblem& problem, int64_t bytes, const at::Tensor& like)
      : memory_(at::empty({bytes}, like.options().dtype(at::kByte))),
        stream_(c10::cuda::getCurrentCUDAStream()) {
    CheckLaunch(op, LaunchExpattMapCuda(problem, memory_.mutable_data_ptr(), stream_.stream()));
    written_.record(stream_);
  }

  const void* data() const override { return memory_.const_data_ptr(); }

  void UseOnCurrentStream() override {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    if (stream == stream_) return;
    if (!IsFilled()) written_.block(stream);
    c10::cuda::CUDACachingAllocator::recordStream(memory_.storage().data_ptr(), stream);
  }

  bool UseInRecording(const ExpattMapPins& pins) override {
    return IsFilled() && KeepWithRecording(c10::cuda::getCurrentCUDAStream().stream(), pins);
  }

 private:
  bool IsFilled() {
    if (filled_) return true;
    // Otherwise the query would be an error during a recording, or spoil that of another thread.
    const c10::cuda::CUDAStreamCaptureModeGuard allowed(cudaStreamCaptureModeRelaxed);
    if (written_.query()) filled_ = true;
    return filled_;
  }

  // CUDA frees the recorded graph's user objects with the last graph made of it, after its work.
  static bool KeepWithRecording(cudaStream_t stream, const ExpattMapPins& pins) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
    const cudaError_t told = cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph);
#else
    const cudaError_t told = cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph);
#endif
    if (told != cudaSuccess || status != cudaStreamCaptureStatusActive || graph == nullptr) return Refused();
    auto pin = std::make_unique<ExpattMapPins>(pins);
    cudaUserObject_t object = nullptr;
    if (cudaUserObjectCreate(&object, pin.get(), Unpin, 1, cudaUserObjectNoDestructorSync) != cudaSuccess) {
      return Refused();
    }
    ++*pins;
    std::ignore = pin.release();  // Unpin() deletes it.
    if (cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove) == cudaSuccess) return true;
    cudaUserObjectRelease(object, 1);
    return Refused();
  }

  // Clears the error, so that CheckLaunch() does not find it.
  static bool Refused() {
    (void)cudaGetLastError();
    return false;
  }

  // Runs on a thread of CUDA's, which must not call CUDA; so the cache frees the memory later.
  static void CUDART_CB Unpin(void* pin) {
    const std::unique_ptr<ExpattMapPins> owned(static_cast<ExpattMapPins*>(pin));
    --**owned;
  }

  at::Tensor memory_;
  c10::cuda::CUDAStream stream_;
  at::cuda::CUDAEvent written_;
  std::atomic<bool> filled_ = false;
};

// Returns the stored map of the problem for a launch on the current stream, or null.
std::shared_ptr<ExpattStoredMemory> StoredMap(const char* op, const ExpattCall& call) {
  const ExpattProblem& p = call.problem;
  const int64_t bytes = ExpattCudaMapBytes(p);
  if (bytes == 0) return nullptr;
  // Never destroyed: when the process ends, CUDA may have ended before.
  static ExpattMaps& maps = *new ExpattMaps;
  const ExpattMapKey key = {.device = call.out.get_device(),
                            .kind = p.kind,
                            .height = p.extent.size[1],
                            .width = p.extent.size[2],
                            .sigma = HasSigma(p.kind) ? static_cast<float>(p.sigma) : 0.0f,
                            .dtype = p.dtype};
  const bool recording = c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
  return maps.Find(key, bytes, recording, [&]() -> std::shared_ptr<ExpattStoredMemory> {
    try {
      return std::make_shared<CudaStoredMap>(op, p, bytes, call.out);
    } catch (const c10::OutOfMemoryError&) {
      return nullptr;
    }
  });
}

at::Tensor Run(const char* op, ExpattCall call) {
  if (call.out.numel() == 0) return call.out;
  const std::shared_ptr<ExpattStoredMemory> map = StoredMap(op, call);
  if (map != nullptr) call.problem.map = map->data();
  const int64_t floats = ExpattCudaWorkspaceFloats(call.problem);
  TORCH_CHECK(floats >= 0, op,
              ": expected fewer than 2^31 positions and blocks of work on CUDA, got a result of shape ",
              call.out.sizes());
  LaunchWithWorkspace(op, call.out, floats, [&](float* workspace, void* stream) {
    return LaunchExpattCuda(call.problem, workspace, stream);
  });
  return call.out;
}

at::Tensor ExpattOnCuda(const at::Tensor& v, std::string_view kind, const at::Tensor& sigma,
                        const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(v.device());
  // float64 has no kernel, because it is only for checking; it uses the reference.
  if (v.scalar_type() == at::kDouble) return ExpattReference(v, kind, sigma, valid);
  ExpattCall call = BindExpatt(v, CheckExpatt(v, kind, sigma, valid), valid);
  call.problem.device_sigma = sigma.const_data_ptr();
  call.problem.device_sigma_dtype = DtypeOf(sigma);
  return Run("expatt", std::move(call));
}

at::Tensor ExpattModuleOnCuda(const at::Tensor& x, const at::Tensor& value_weight,
                              const OptionalTensor& value_bias, const OptionalTensor& out_weight,
                              const OptionalTensor& out_bias, std::string_view kind, double sigma,
                              const OptionalTensor& valid) {
  const c10::cuda::CUDAGuard device(x.device());
  const ExpattWeights weights{value_weight, value_bias, out_weight, out_bias};
  if (x.scalar_type() == at::kDouble) return ExpattModuleReference(x, weights, kind, sigma, valid);
  const ExpattKind known = CheckExpattModule(x, weights, kind, sigma, valid);
  return Run("expatt_module", BindExpattModule(x, weights, known, sigma, valid));
}

}  // namespace

TORCH_LIBRARY_IMPL(saccade, CUDA, m) {
  m.impl("expatt", ExpattOnCuda);
  m.impl("expatt_module", ExpattModuleOnCuda);
}

}  // namespace saccade::kernels
