// Runs CUDA kernels on the CPU: g++ compiles the same .cuh that nvcc compiles.
//
// Every CUDA thread is a fibre; blocks run one after another. Threads between two barriers run in an order
// shuffled by a seed, and one warp lags behind the others as far as it can, so code that lacks a barrier
// gives different results for different seeds. Shared memory starts as NaN and is allocated on the heap, so
// that AddressSanitizer detects accesses past its end. An asynchronous copy destroys what is at its
// destination when it is issued, and its data is there only when the thread that issued it waits. Not
// emulated: communication between running blocks, atomics, and time. Tensor cores are emulated only as far as
// device/mma.cuh does with Gather().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <utility>

struct dim3 {
  // NOLINTNEXTLINE(google-explicit-constructor): CUDA's converts a number of threads too
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

// Updated whenever a thread resumes.
extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace saccade::emulator {

struct LaunchOptions {
  dim3 grid = {};
  dim3 block = {};
  size_t shared_bytes = 0;  // size of dynamic shared memory
  uint64_t seed = 1;        // determines the order in which threads and blocks run
};

// Runs `body` once per CUDA thread and returns when all are done. Throws std::logic_error, naming the
// threads, on a deadlock: some threads wait at a barrier or in a shuffle while others have exited or wait
// elsewhere. The kernel's state is then abandoned. Launches on different OS threads are independent.
void Launch(const LaunchOptions& options, const std::function<void()>& body);

// Primitives of the device functions below; call them inside a kernel only.
void SyncThreads(const std::source_location& where);
void SyncWarp(uint32_t mask, const std::source_location& where);
uint64_t Shuffle(uint32_t mask, uint64_t value, int source_lane, const std::source_location& where);
// Collective operation of a warp: once all 32 lanes have called it, `all` receives the `bytes` of every lane,
// in lane order.
void Gather(const void* mine, size_t bytes, void* all,
            const std::source_location& where = std::source_location::current());
// The copies of device/copy_async.cuh: `read` bytes of `from` and then zeros, `bytes` together. A thread's
// copies since its last CommitCopies() are one group, and WaitForCopies(n) completes all groups but the
// latest n. A thread must not end with copies that it has not waited for.
void CopyAsync(void* to, const void* from, size_t bytes, size_t read);
void CommitCopies(const std::source_location& where);
void WaitForCopies(size_t latest, const std::source_location& where);
// Throws std::logic_error if the address is not a multiple of `bytes`, which is a fault on the device.
void RequireAligned(const void* address, size_t bytes);
int Lane();
void* SharedMemory(const void* key, size_t bytes);
void* DynamicSharedMemory();

template <typename T>
T ShuffleAs(uint32_t mask, T value, int source_lane, const std::source_location& where) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = Shuffle(mask, bits, source_lane, where);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace saccade::emulator

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
  saccade::emulator::SyncThreads(where);
}

inline void __syncwarp(uint32_t mask, const std::source_location& where = std::source_location::current()) {
  saccade::emulator::SyncWarp(mask, where);
}

// If the source lane is outside the warp, a thread gets its own value back, as on the device.
template <typename T>
T __shfl_sync(uint32_t mask, T value, int source,
              const std::source_location& where = std::source_location::current()) {
  return saccade::emulator::ShuffleAs(mask, value, source & 31, where);
}
template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int lanes,
                  const std::source_location& where = std::source_location::current()) {
  return saccade::emulator::ShuffleAs(mask, value, saccade::emulator::Lane() ^ lanes, where);
}
template <typename T>
T __shfl_down_sync(uint32_t mask, T value, unsigned lanes,
                   const std::source_location& where = std::source_location::current()) {
  const int source = saccade::emulator::Lane() + static_cast<int>(lanes);
  return saccade::emulator::ShuffleAs(mask, value, source > 31 ? saccade::emulator::Lane() : source, where);
}
// NOLINTEND(bugprone-reserved-identifier)
