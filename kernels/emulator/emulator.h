// Runs CUDA kernels on the CPU: the same .cuh that nvcc compiles, compiled by g++.
//
// A fibre per thread, one block after another. Threads between two barriers run in an order shuffled by a
// seed, so code that needs a barrier it does not have gives different answers for different seeds. Shared
// memory starts as NaN and lies on the heap, so AddressSanitizer sees an access past its end.
// What is not emulated: memory shared between blocks while they run, atomics, asynchronous copies, and time.
// Of the tensor cores there is what device/mma.cuh makes of Gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <utility>

struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

// Set anew whenever a thread resumes.
extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace saccade::emulator {

struct LaunchOptions {
  dim3 grid = {};
  dim3 block = {};
  size_t shared_bytes = 0;  // of dynamic shared memory
  uint64_t seed = 1;        // of the order in which threads and blocks run
};

// Runs body once per thread and returns when all are done. Throws std::logic_error, naming the threads, when
// they cannot all go on: some wait at a barrier while others have exited, wait at another one, or wait in a
// shuffle. The kernel's state is then abandoned. Launches on different OS threads are independent.
void Launch(const LaunchOptions& options, const std::function<void()>& body);

// What the device functions below are made of; for use inside a kernel only.
void SyncThreads(const std::source_location& where);
uint64_t Shuffle(uint32_t mask, uint64_t value, int source_lane, const std::source_location& where);
// For what a warp does as one: when all 32 lanes have come, `all` receives each one's `bytes`, in their
// order.
void Gather(const void* mine, size_t bytes, void* all,
            const std::source_location& where = std::source_location::current());
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

inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
  saccade::emulator::SyncThreads(where);
}

// A source lane outside the warp gives a thread its own value back, as on the device.
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
