#include "kernels/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernels/common/device.h"
#include "kernels/device/copy_async.cuh"
#include "kernels/device/operand_tile.cuh"

namespace saccade::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string ErrorOf(const LaunchOptions& options, const std::function<void()>& body) {
  try {
    Launch(options, body);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

__global__ void Reverse(const float* in, float* out, bool with_barrier) {
  SACCADE_SHARED(float, tile, 64);
  tile[threadIdx.x] = in[threadIdx.x];
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

std::vector<float> RunReverse(bool with_barrier, uint64_t seed) {
  std::vector<float> in(64), out(64, -1.0f);
  for (int i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  Launch({.block = 64, .seed = seed}, [&] { Reverse(in.data(), out.data(), with_barrier); });
  return out;
}

TEST(EmulatorTest, ABarrierOrdersSharedMemory) {
  for (uint64_t seed = 1; seed < 5; ++seed) {
    const auto out = RunReverse(true, seed);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], 63 - i);
  }
}

TEST(EmulatorTest, AMissingBarrierShowsAsPoisonThatChangesWithTheSeed) {
  std::set<std::vector<bool>> patterns;
  for (uint64_t seed = 1; seed < 5; ++seed) {
    std::vector<bool> poisoned;
    for (const float value : RunReverse(false, seed)) poisoned.push_back(std::isnan(value));
    EXPECT_THAT(poisoned, testing::Contains(true));
    patterns.insert(poisoned);
  }
  EXPECT_GT(patterns.size(), 1u);
}

// Each warp hands its number to the next one, round after round. Without the barrier behind the reading, a
// warp that lags behind reads what the next round has written.
__global__ void PassOn(int* out, bool with_barrier) {
  SACCADE_SHARED(int, given, 4);
  const int warp = static_cast<int>(threadIdx.x) / kernels::kWarp;
  int held = warp;
  for (int round = 0; round < 8; ++round) {
    // Where all lanes of a warp meet, the others go on.
    __shfl_sync(kernels::kWholeWarp, held, 0);
    if (threadIdx.x % kernels::kWarp == 0) given[warp] = held;
    __syncthreads();
    held = given[(warp + 1) % 4];
    if (with_barrier) __syncthreads();
  }
  out[threadIdx.x] = held;
}

__global__ void ReadTheNextLane(int* out, bool with_barrier) {
  SACCADE_SHARED(int, given, kernels::kWarp);
  given[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  if (with_barrier) __syncwarp(kernels::kWholeWarp);
  out[threadIdx.x] = given[(threadIdx.x + 1) % kernels::kWarp];
}

TEST(EmulatorTest, AWarpWaitsForItsLanes) {
  for (const bool with_barrier : {true, false}) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      int out[kernels::kWarp];
      Launch({.block = kernels::kWarp, .seed = seed}, [&] { ReadTheNextLane(out, with_barrier); });
      for (int i = 0; i < kernels::kWarp; ++i) wrong += out[i] != (i + 1) % kernels::kWarp + 1;
    }
    EXPECT_EQ(wrong == 0, with_barrier);
  }
}

TEST(EmulatorTest, AWarpThatLagsBehindShowsAMissingBarrierBeforeAnotherRound) {
  for (const bool with_barrier : {true, false}) {
    std::vector<int> out(128);
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Launch({.block = 128, .seed = seed}, [&] { PassOn(out.data(), with_barrier); });
      for (int i = 0; i < 128; ++i) wrong += out[i] != i / 32;
    }
    EXPECT_EQ(wrong == 0, with_barrier);
  }
}

TEST(EmulatorTest, ReportsABarrierThatAnExitedThreadNeverReaches) {
  EXPECT_THAT(ErrorOf({.block = 40},
                      [] {
                        if (threadIdx.x != 7) __syncthreads();
                      }),
              AllOf(HasSubstr("waits at __syncthreads"), HasSubstr("thread 7 has exited")));
}

__global__ void WaitByWarp() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(EmulatorTest, ReportsThreadsAtDifferentBarriers) {
  EXPECT_THAT(ErrorOf({.block = 33}, WaitByWarp),
              AllOf(HasSubstr("thread 0 waits at __syncthreads"), HasSubstr("while thread 32 waits at")));
}

TEST(EmulatorTest, ReportsAShuffleThatALaneOfTheMaskNeverReaches) {
  EXPECT_THAT(ErrorOf({.block = 32},
                      [] {
                        if (threadIdx.x != 3) __shfl_sync(kernels::kWholeWarp, 1.0f, 0);
                      }),
              AllOf(HasSubstr("waits in a shuffle"), HasSubstr("thread 3 has exited")));
  EXPECT_THAT(ErrorOf({.block = 16}, [] { __shfl_sync(kernels::kWholeWarp, 1.0f, 0); }),
              HasSubstr("lanes that the block does not have"));
}

TEST(EmulatorTest, ShufflesWithinEachWarp) {
  std::vector<int> down(64), exchanged(64), first(64);
  std::vector<float> sums(64);
  Launch({.block = 64, .seed = 3}, [&] {
    const int i = static_cast<int>(threadIdx.x);
    down[i] = __shfl_down_sync(kernels::kWholeWarp, i, 5);
    exchanged[i] = __shfl_xor_sync(kernels::kWholeWarp, i, 1);
    first[i] = __shfl_sync(kernels::kWholeWarp, i, 0);
    sums[i] = kernels::WarpSum(static_cast<float>(i));
  });
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(down[i], i % 32 + 5 < 32 ? i + 5 : i);
    EXPECT_EQ(exchanged[i], i ^ 1);
    EXPECT_EQ(first[i], i / 32 * 32);
    EXPECT_EQ(sums[i], i < 32 ? 496 : 1520);
  }
}

TEST(EmulatorTest, AGatherBringsTheWholeWarpTogether) {
  std::vector<int> sums(64);
  Launch({.block = 64, .seed = 5}, [&] {
    const int mine[2] = {static_cast<int>(threadIdx.x), 1};
    int all[32][2];
    Gather(mine, sizeof(mine), all);
    for (int lane = 0; lane < 32; ++lane) {
      ASSERT_EQ(all[lane][0], static_cast<int>(threadIdx.x) / 32 * 32 + lane);
      sums[threadIdx.x] += all[lane][1];
    }
  });
  EXPECT_THAT(sums, testing::Each(32));
  EXPECT_THAT(ErrorOf({.block = 32},
                      [] {
                        int all[32];
                        if (threadIdx.x != 3) Gather(&all[31], sizeof(int), all);
                      }),
              AllOf(HasSubstr("waits in a shuffle"), HasSubstr("thread 3 has exited")));
}

// Copies 16 bytes for each thread, in two groups, and reads what other threads copied.
__global__ void CopyAndReverse(const float* in, float* out, int waits, bool with_barrier) {
  SACCADE_SHARED(kernels::Float4, tile, 64);
  const int thread = static_cast<int>(threadIdx.x);
  for (int half = 0; half < 2; ++half) {
    kernels::CopyAsync16(&tile[half * 32 + thread], in + (half * 32 + thread) * 4, thread != 5);
    kernels::CommitCopies();
  }
  if (waits == 1) kernels::WaitForCopies<1>();
  if (waits == 0) kernels::WaitForCopies<0>();
  if (with_barrier) __syncthreads();
  out[thread] = tile[31 - thread].at[1];
  out[thread + 32] = tile[63 - thread].at[1];
  __syncthreads();
  kernels::WaitForCopies<0>();
}

std::vector<float> RunCopies(int waits, bool with_barrier, uint64_t seed) {
  alignas(16) float in[256];
  for (int i = 0; i < 256; ++i) in[i] = static_cast<float>(i);
  std::vector<float> out(64, -1.0f);
  Launch({.block = 32, .seed = seed}, [&] { CopyAndReverse(in, out.data(), waits, with_barrier); });
  return out;
}

TEST(EmulatorTest, CopiesAreThereAfterTheWaitAndTheBarrier) {
  const auto out = RunCopies(0, true, 3);
  for (int i = 0; i < 64; ++i) {
    const int from = i / 32 * 32 + 31 - i % 32;
    EXPECT_EQ(out[i], from % 32 == 5 ? 0 : static_cast<float>(from * 4 + 1)) << i;
  }
}

TEST(EmulatorTest, CopiesAreNotThereBeforeTheWait) {
  for (const float value : RunCopies(2, true, 3)) EXPECT_TRUE(std::isnan(value));
  // The wait for all groups but one leaves the second half.
  const auto out = RunCopies(1, true, 3);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(std::isnan(out[i]), i >= 32) << i;
}

TEST(EmulatorTest, CopiesOfOtherThreadsNeedABarrier) {
  EXPECT_THAT(RunCopies(0, false, 3), testing::Contains(testing::IsNan()));
}

TEST(EmulatorTest, ReportsCopiesThatAreMisalignedOrNeverAwaited) {
  alignas(16) static float in[8];
  EXPECT_THAT(ErrorOf({.block = 1, .shared_bytes = 16},
                      [] {
                        SACCADE_DYNAMIC_SHARED(float, to);
                        kernels::CopyAsync16(to, in + 1, true);
                      }),
              HasSubstr("not a multiple of its size"));
  EXPECT_THAT(ErrorOf({.block = 2, .shared_bytes = 32},
                      [] {
                        SACCADE_DYNAMIC_SHARED(float, to);
                        kernels::CopyAsync16(to + 4 * threadIdx.x, in, true);
                        kernels::CommitCopies();
                        if (threadIdx.x == 0) kernels::WaitForCopies<0>();
                      }),
              HasSubstr("thread 1 has exited before its asynchronous copies were there"));
}

TEST(EmulatorTest, AGroupWithoutCopiesNeedsNoWait) {
  EXPECT_NO_THROW(Launch({.block = 2}, [] { kernels::CommitCopies(); }));
}

TEST(EmulatorTest, EveryThreadOfTheGridRunsOnceWithItsIndices) {
  std::vector<int> runs(2 * 3 * 4 * 5, 0);
  Launch({.grid = dim3(2, 3), .block = dim3(4, 5), .seed = 9}, [&] {
    ASSERT_EQ(gridDim.y, 3u);
    ASSERT_EQ(blockDim.x, 4u);
    ++runs[((blockIdx.y * 2 + blockIdx.x) * 5 + threadIdx.y) * 4 + threadIdx.x];
  });
  EXPECT_THAT(runs, testing::Each(1));
}

TEST(EmulatorTest, SharedMemoryIsPoisonedForEveryBlock) {
  std::vector<float> seen(3);
  Launch({.grid = 3, .shared_bytes = sizeof(float)}, [&] {
    SACCADE_DYNAMIC_SHARED(float, value);
    seen[blockIdx.x] = *value;
    *value = 1.0f;
  });
  for (const float value : seen) EXPECT_TRUE(std::isnan(value));
}

TEST(EmulatorTest, AnExceptionInAKernelReachesTheCaller) {
  EXPECT_THROW(Launch({}, [] { throw std::out_of_range("index"); }), std::out_of_range);
}

#if defined(SACCADE_ASAN)
TEST(EmulatorDeathTest, AddressSanitizerSeesAnAccessPastSharedMemory) {
  EXPECT_DEATH(Launch({.block = 32, .shared_bytes = 31 * sizeof(float)},
                      [] {
                        SACCADE_DYNAMIC_SHARED(float, scores);
                        scores[threadIdx.x] = 1.0f;
                      }),
               "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace saccade::emulator
