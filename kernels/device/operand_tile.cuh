// Operand tiles of the attention core: 64 rows of up to kDepth elements in shared memory, which 256 threads
// load from memory of any layout, and the product of two tiles, whose 64 x 64 sums are distributed over the
// block.
//
// Every product of the core has this shape: sum[r][s] += sum over k of A[r][k] B[s][k]. It multiplies queries
// and keys over channels, and coefficients and values over keys. SimtMath computes it in float32 on every
// chip, MmaMath on the tensor cores for 16-bit elements.
#pragma once

#include <type_traits>

#include "kernels/common/device.h"
#include "kernels/device/mma.cuh"

namespace saccade::kernels {

inline constexpr int kTile = 64;  // rows of a tile
inline constexpr int kBlockThreads = 256;
inline constexpr int kBlockWarps = kBlockThreads / kWarp;
inline constexpr int kSums = kTile * kTile / kBlockThreads;  // of a product, per thread

// Four adjacent floats that are read at once. Shared tiles are arrays of it, to get its alignment.
struct alignas(16) Float4 {
  float at[4];
};

// Size of an operand tile of E: kWords Float4s of shared memory, for both kinds of arithmetic.
template <typename E>
struct OperandTile {
  static constexpr int kDepth = 32;
  static constexpr int kWords =
      (sizeof(E) == 4 ? kDepth * (kTile + 4) : kTile * (kDepth + 8)) * sizeof(E) / 16;
};

// float32 arithmetic. A thread has 4 x 4 sums.
template <typename E>
struct SimtMath {
  static constexpr int kStride = kTile + 4;  // of k: multiple of 16 bytes for float; avoids bank conflicts
  static constexpr int kStep = 1;            // depths are rounded up to a multiple of it

  __device__ static int Index(int row, int k) { return k * kStride + row; }
  __device__ static int Row(int i) { return static_cast<int>(threadIdx.x) / 16 * 4 + i / 4; }
  __device__ static int Column(int i) { return static_cast<int>(threadIdx.x) % 16 * 4 + i % 4; }

  // Stores a vector along k, or along rows.
  template <bool kAlongRows>
  __device__ static void PutVector(E* tile, int row, int k, const E (&vector)[16 / sizeof(E)]) {
    if constexpr (kAlongRows && sizeof(E) == 4) {
      Vector16 bytes;
      __builtin_memcpy(&bytes, vector, sizeof(bytes));
      *reinterpret_cast<Vector16*>(tile + Index(row, k)) = bytes;
    } else {
      SACCADE_UNROLL
      for (int i = 0; i < static_cast<int>(16 / sizeof(E)); ++i)
        tile[kAlongRows ? Index(row + i, k) : Index(row, k + i)] = vector[i];
    }
  }

  __device__ static void LoadFour(const float* from, float (&to)[4]) {
    const Float4 four = *reinterpret_cast<const Float4*>(from);
    for (int i = 0; i < 4; ++i) to[i] = four.at[i];
  }
  template <typename Half>
  __device__ static void LoadFour(const Half* from, float (&to)[4]) {
    for (int i = 0; i < 4; ++i) to[i] = ToFloat(from[i]);
  }

  __device__ static void Multiply(const E* a, const E* b, int depth, float (&sum)[kSums]) {
    a += Row(0);
    b += Column(0);
    SACCADE_UNROLL_BY(8)
    for (int k = 0; k < depth; ++k) {
      float left[4], right[4];
      LoadFour(a + k * kStride, left);
      LoadFour(b + k * kStride, right);
      SACCADE_UNROLL
      for (int i = 0; i < kSums; ++i) sum[i] += left[i / 4] * right[i % 4];
    }
  }
};

// Tensor-core arithmetic. A warp has 16 x 32 sums, as four fragments.
template <typename E>
struct MmaMath {
  static constexpr int kDepth = OperandTile<E>::kDepth;
  static constexpr int kStride = kDepth + 8;  // of rows: keeps a fragment's words in different banks
  static constexpr int kStep = 16;

  // A tile deeper than kDepth is stored as consecutive tiles of kDepth.
  __device__ static int Index(int row, int k) {
    return k / kDepth * (OperandTile<E>::kWords * 8) + row * kStride + k % kDepth;
  }
  __device__ static int Group() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
  __device__ static int InGroup() { return static_cast<int>(threadIdx.x) % 4; }
  __device__ static int WarpRow() { return static_cast<int>(threadIdx.x) / kWarp % 4 * 16; }
  __device__ static int WarpColumn() { return static_cast<int>(threadIdx.x) / kWarp / 4 * 32; }
  __device__ static int Row(int i) { return WarpRow() + Group() + i / 2 % 2 * 8; }
  __device__ static int Column(int i) { return WarpColumn() + i / 4 * 8 + 2 * InGroup() + i % 2; }

  // Stores a vector along k, or along rows.
  template <bool kAlongRows>
  __device__ static void PutVector(E* tile, int row, int k, const E (&vector)[8]) {
    if constexpr (kAlongRows) {
      SACCADE_UNROLL
      for (int i = 0; i < 8; ++i) tile[Index(row + i, k)] = vector[i];
    } else {
      Vector16 bytes;
      __builtin_memcpy(&bytes, vector, sizeof(bytes));
      *reinterpret_cast<Vector16*>(tile + Index(row, k)) = bytes;
    }
  }

  __device__ static void Multiply(const E* a, const E* b, int depth, float (&sum)[kSums]) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    a += Index(WarpRow() + lane % 16, lane / 16 * 8);
    b += Index(WarpColumn() + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
    for (int k = 0; k < depth; k += 16) {
      uint32_t left[4];
      LoadMatrices<false>(a + k, left);
      SACCADE_UNROLL
      for (int n = 0; n < kSums / 4; n += 2) {
        uint32_t both[4];
        LoadMatrices<false>(b + n * 8 * kStride + k, both);
        SACCADE_UNROLL
        for (int m = 0; m < 2; ++m) {
          const uint32_t right[2] = {both[2 * m], both[2 * m + 1]};
          float part[4];
          for (int i = 0; i < 4; ++i) part[i] = sum[(n + m) * 4 + i];
          Mma(part, left, right, E());
          for (int i = 0; i < 4; ++i) sum[(n + m) * 4 + i] = part[i];
        }
      }
    }
  }
};

// Reads threadIdx.x again at every call, so that values derived from it need not stay in registers.
__device__ inline int ThreadNow() {
#if defined(__CUDACC__)
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
#else
  return static_cast<int>(threadIdx.x);
#endif
}

// The memory of a tile whose sides are positions and channels.
struct TileSource {
  const void* data;  // first channel of the sample and head
  bool float32;      // element type: float32, or the map's type
  int64_t channel_stride;
  const int64_t* at;  // in shared memory: the offset of each position, -1 if it does not exist
  int channels;       // further channels read as zero
};

// A thread's part of a tile, on its way from global to shared memory in two steps, so that loading overlaps
// with a product. kRowsArePositions: rows are positions and k counts channels, otherwise the reverse.
template <typename T, typename Math, bool kRowsArePositions>
class TileTransfer {
 public:
  // positions_adjacent: neighbouring threads should read neighbouring positions.
  __device__ explicit TileTransfer(bool positions_adjacent)
      : rows_adjacent_(positions_adjacent == kRowsArePositions) {}

  __device__ void Fetch(const TileSource& from) {
    if (from.float32) {
      rows_adjacent_ ? FetchFrom<true, float>(from) : FetchFrom<false, float>(from);
    } else {
      rows_adjacent_ ? FetchFrom<true, T>(from) : FetchFrom<false, T>(from);
    }
  }
  __device__ void Put(T* tile) const { rows_adjacent_ ? PutTo<true>(tile) : PutTo<false>(tile); }

 private:
  static constexpr int kDepth = OperandTile<T>::kDepth;
  static constexpr int kVector = 16 / sizeof(T);  // elements along the adjacent side that are loaded at once
  static constexpr int kHeld = kTile * kDepth / kVector / kBlockThreads;

  // The thread's i-th vector begins at (row + i * kRowStep, k + i * kKStep).
  template <bool kRowsAdjacent>
  struct Place {
    // Neighbouring threads read along the adjacent side. Of 16-bit rows only two do, at least one 32-byte
    // sector, and the warp continues across them, to avoid bank conflicts when it writes the tile.
    static constexpr int kAlong = (kRowsAdjacent ? kTile : kDepth) / kVector;
    static constexpr int kNear = kRowsAdjacent && sizeof(T) == 2 ? 2 : kAlong;
    static constexpr int kStep = kBlockThreads / kAlong;
    static constexpr int kRowStep = kRowsAdjacent ? 0 : kStep;
    static constexpr int kKStep = kRowsAdjacent ? kStep : 0;
    __device__ Place() {
      const int thread = ThreadNow();
      const int along = (thread % kNear + thread / (kNear * kStep) * kNear) * kVector;
      const int across = thread / kNear % kStep;
      row = kRowsAdjacent ? along : across;
      k = kRowsAdjacent ? across : along;
    }
    int row, k;
  };

  template <bool kRowsAdjacent, typename From>
  __device__ void FetchFrom(const TileSource& from) {
    using At = Place<kRowsAdjacent>;
    constexpr bool kAlongPositions = kRowsAdjacent == kRowsArePositions;
    const At place;
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      const int row = place.row + i * At::kRowStep;
      const int k = place.k + i * At::kKStep;
      FetchVector<kAlongPositions, From>(from, kRowsArePositions ? row : k, kRowsArePositions ? k : row,
                                         held_[i]);
    }
  }

  // Loads kVector elements from one position and channel on: 16 aligned bytes at once if they are adjacent,
  // and else one by one.
  template <bool kAlongPositions, typename From>
  __device__ static void FetchVector(const TileSource& from, int position, int channel, T (&to)[kVector]) {
    const int64_t first = from.at[position];
    const From* const data = static_cast<const From*>(from.data) + channel * from.channel_stride;
    bool whole = first >= 0 && reinterpret_cast<uintptr_t>(data + first) % 16 == 0;
    if constexpr (kAlongPositions) {
      whole = whole && channel < from.channels;
      SACCADE_UNROLL
      for (int e = 1; e < kVector; ++e) whole = whole && from.at[position + e] == first + e;
    } else {
      whole = whole && from.channel_stride == 1 && channel + kVector <= from.channels;
    }
    if (whole) {
      From elements[kVector];
      constexpr int kLoads = sizeof(elements) / 16;
      SACCADE_UNROLL
      for (int load = 0; load < kLoads; ++load) {
        const Vector16 bytes = reinterpret_cast<const Vector16*>(data + first)[load];
        __builtin_memcpy(elements + load * (16 / sizeof(From)), &bytes, sizeof(bytes));
      }
      SACCADE_UNROLL
      for (int e = 0; e < kVector; ++e) Convert(elements[e], &to[e]);
      return;
    }
    SACCADE_UNROLL
    for (int e = 0; e < kVector; ++e) {
      const int64_t at = from.at[kAlongPositions ? position + e : position];
      const int further = kAlongPositions ? 0 : e;
      if (at >= 0 && channel + further < from.channels) {
        Convert(data[at + further * from.channel_stride], &to[e]);
      } else {
        to[e] = T(0.0f);
      }
    }
  }

  template <typename From>
  __device__ static void Convert(From value, T* to) {
    if constexpr (std::is_same_v<From, T>) {
      *to = value;
    } else {
      FromFloat(ToFloat(value), to);
    }
  }

  template <bool kRowsAdjacent>
  __device__ void PutTo(T* tile) const {
    using At = Place<kRowsAdjacent>;
    const At place;
    SACCADE_UNROLL
    for (int i = 0; i < kHeld; ++i) {
      Math::template PutVector<kRowsAdjacent>(tile, place.row + i * At::kRowStep, place.k + i * At::kKStep,
                                              held_[i]);
    }
  }

  bool rows_adjacent_;
  T held_[kHeld][kVector];
};

}  // namespace saccade::kernels
