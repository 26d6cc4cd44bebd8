// The kernel of global self-attention's axial part, which also computes the final result; see gsa.cuh.
#pragma once

#include "kernels/gsa/gsa_axis_mma.cuh"
#include "kernels/gsa/gsa_axis_simt.cuh"

namespace saccade::kernels {

// The number of blocks per multiprocessor for which the kernel has enough registers.
constexpr int GsaBlocksAtOnce(int tiles, bool softmax, bool held, bool tensor_cores) {
  if (softmax) return tensor_cores ? 2 : 1;
  return tensor_cores && held ? (tiles == 1 ? 4 : 3) : 2;
}

// kTiles: vectors of value channels that a block computes. kSoftmax: the scores include k, and a softmax
// makes them coefficients. kTensorCores requests tensor cores; chips without suitable ones use float32
// arithmetic.
template <typename T, int kTiles, bool kSoftmax, bool kHeld, bool kTensorCores>
__global__ void __launch_bounds__(kGsaThreads,
                                  GsaBlocksAtOnce(kTiles, kSoftmax, kHeld, kTensorCores&& kHasMma))
    GsaAxisKernel(GsaAxis run) {
  if constexpr (kTensorCores && kHasMma) {
    GsaAxisWithMma<T, kTiles, kSoftmax, kHeld>::Run(run);
  } else {
    GsaAxisWithoutMma<T, kTiles, kSoftmax>::Run(run);
  }
}

}  // namespace saccade::kernels
