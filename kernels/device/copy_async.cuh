// Asynchronous copies from global to shared memory, 16 bytes each. From sm_80 on they use no registers and
// overlap with computation; before, each copies at once. A thread's copies since its last CommitCopies() are
// one group. WaitForCopies<n>() returns when all groups of the calling thread but the latest n have arrived;
// other threads see the data after a barrier that follows.
#pragma once

#include "kernels/common/device.h"

namespace saccade::kernels {

#if defined(__CUDACC__)

// Both addresses must be multiples of 16. `there` false: writes zeros, and reads nothing.
__device__ inline void CopyAsync16(void* to, const void* from, bool there) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(there ? 16 : 0)
               : "memory");
#else
  *static_cast<uint4*>(to) = there ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
#endif
}

__device__ inline void CommitCopies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int kLatest>
__device__ inline void WaitForCopies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLatest) : "memory");
#endif
}

#else

inline void CopyAsync16(void* to, const void* from, bool there) {
  emulator::CopyAsync(to, from, 16, there ? 16 : 0);
}
inline void CommitCopies(const std::source_location& where = std::source_location::current()) {
  emulator::CommitCopies(where);
}
template <int kLatest>
inline void WaitForCopies(const std::source_location& where = std::source_location::current()) {
  emulator::WaitForCopies(kLatest, where);
}

#endif

}  // namespace saccade::kernels
