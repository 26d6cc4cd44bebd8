// The kernel of global self-attention's axial part, which also computes the final result; see gsa.cuh.
#pragma once

#include "kernels/gsa/gsa_axis_mma.cuh"
#include "kernels/gsa/gsa_axis_simt.cuh"

namespace saccade::kernels {

// kTiles: vectors of value channels that a block computes. kTensorCores requests tensor cores; chips without
// suitable ones use float32 arithmetic.
template <typename T, int kTiles, bool kTensorCores>
__global__ void __launch_bounds__(kGsaThreads, 2) GsaAxisKernel(GsaAxis run) {
  if constexpr (kTensorCores && kHasMma) {
    GsaAxisWithMma<T, kTiles>::Run(run);
  } else {
    GsaAxisWithoutMma<T, kTiles>::Run(run);
  }
}

}  // namespace saccade::kernels
