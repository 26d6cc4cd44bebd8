// The CUDA side of every operator is one plugin library, opened at run time: one binary serves machines with
// and without a GPU, and nobody carries torch_cuda who has no use for it.
#pragma once

#include <string>

namespace saccade::kernels {

struct CudaPlugin {
  bool loaded = false;
  int devices = 0;
  // Why it is not loaded, in words for an operator; empty if it is.
  std::string reason;
};

// Looks for a GPU, and if there is one opens libtorch_cuda.so and libsaccade_cuda.so (which lies beside
// libsaccade_kernels.so), whose operators register themselves. The first call may take seconds, later ones
// return its answer; any thread may call. Never throws.
const CudaPlugin& LoadCudaPlugin();

// A function that the plugin exports, or null.
void* CudaPluginSymbol(const char* name);

}  // namespace saccade::kernels
