#include "kernels/brgemm/brgemm.h"

#include <ATen/native/CPUBlas.h>
#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>

namespace saccade::kernels {
namespace {

// Without AMX, the instructions of AVX-512 BF16 are used by our own loops, which need no second pass to add.
BFloat16Product ProductWithAmx() {
  // LibTorch packs matrices for bfloat16 if oneDNN uses AMX for it: the processor has it, the system permits
  // it, and ONEDNN_MAX_CPU_ISA does not forbid it.
  if (!at::native::cpublas::could_pack(at::kBFloat16)) return nullptr;
  return ComputesBlocks(&BFloat16ProductOfOneDnn) ? &BFloat16ProductOfOneDnn : nullptr;
}

[[maybe_unused]] const bool product_is_registered = [] {
  SetBFloat16ProductSource(&ProductWithAmx);
  return true;
}();

}  // namespace

void BFloat16ProductOfOneDnn(int64_t rows, int64_t columns, int64_t depth, const uint32_t* a,
                             const uint32_t* b, float* c) {
  at::native::cpublas::brgemm(rows, columns, depth, kBlockDepth, kBlockSide, kBlockSide, /*add_C=*/false,
                              reinterpret_cast<const at::BFloat16*>(a),
                              reinterpret_cast<const at::BFloat16*>(b), c, /*is_vnni=*/true);
  // Gives the tile registers of this thread back, which other code configures for itself.
  at::native::cpublas::brgemm_release(/*is_vnni=*/true);
}

}  // namespace saccade::kernels
