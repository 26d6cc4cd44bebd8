// Stores the whole map of explicitly modelled attention for the direct product (expatt_direct.cuh), which
// then reads its entries instead of computing them: for 16-bit maps of up to 3136 positions, 20 MB. The
// caller keeps the stored map; it depends on the kind, the extent, sigma and the type alone.
#pragma once

#include "kernels/expatt/expatt.cuh"

namespace saccade::kernels {

// Arguments of the launch.
struct ExpattStoredMap {
  ExpattDirect direct;
  void* map;
};

// Launched with one block for each block of positions, and with dynamic shared memory for the map of
// distances. The entries and their order of summation are those of ExpattDirectKernel.
template <typename T>
__global__ void __launch_bounds__(ExpattDirect::kThreads) ExpattMapKernel(ExpattStoredMap run) {
  using Size = ExpattDirect;
  SACCADE_DYNAMIC_SHARED(float, own_table);
  SACCADE_SHARED(float, weights, Size::kWarps* Size::kPositions);
  SACCADE_SHARED(ExpattCoordinates, coordinates, Size::kPositions + Size::kKeys);
  const ExpattDirect& direct = run.direct;
  const int thread = static_cast<int>(threadIdx.x);
  const DeviceBox box(direct.p.extent, 0);
  const ExpattDirectBlock block = {
      box, own_table, box.size[2], 0, nullptr, coordinates, coordinates + Size::kPositions, nullptr, weights};
  const float sigma = ExpattSigma(direct.p);
  for (int i = thread; i < box.Positions(); i += Size::kThreads) {
    own_table[i] = ExpattRounded<T>(
        1 + ExpattWeight(direct.p.kind, i / box.size[2], i % box.size[2], box.size[1], box.size[2], sigma));
  }
  if (thread < Size::kPositions) {
    const int position = static_cast<int>(blockIdx.x) * Size::kPositions + thread;
    const bool exists = position < box.Positions();
    block.positions[thread] = {exists ? position / box.size[2] : 0, exists ? position % box.size[2] : 0};
  }
  float weight[Size::kPositions / 8] = {};
  for (int first = 0; first < box.Positions(); first += Size::kKeys) {
    __syncthreads();
    if (thread < Size::kKeys) {
      const int key = first + thread < box.Positions() ? first + thread : 0;
      block.keys[thread] = {key / box.size[2], key % box.size[2]};
    }
    __syncthreads();
    uint32_t right[Size::kPositions / 8][2];
    ExpattEntries<T>(block, first, weight, right);
    SACCADE_UNROLL
    for (int i = 0; i < Size::kMapGroups; ++i) {
      ExpattVector vector;
      __builtin_memcpy(&vector, &right[2 * i], sizeof(vector));
      static_cast<ExpattVector*>(run.map)[direct.MapVector(blockIdx.x, first, i)] = vector;
    }
  }
  ExpattStoreWeights(weight, weights + thread / kWarp * Size::kPositions);
  __syncthreads();
  if (thread < Size::kPositions) {
    auto* const sums = reinterpret_cast<float*>(static_cast<ExpattVector*>(run.map) + direct.MapVectors());
    sums[static_cast<int64_t>(blockIdx.x) * Size::kPositions + thread] =
        ExpattSumOfWarps(weights + thread, Size::kPositions);
  }
}

// Returns the size of the stored map that the problem can use, on chips with tensor cores for its type; 0 if
// it has none.
inline int64_t ExpattMapBytes(const ExpattProblem& p) {
  const ExpattCuda run(p, nullptr);
  const bool known = p.extent.valid == nullptr && (p.device_sigma == nullptr || !HasSigma(p.kind));
  if (!known || BytesOf(p.dtype) != 2 || !run.direct || run.plane > ExpattDirect::kMaxMapPositions) return 0;
  return ExpattDirect(p, p.x, p.out, nullptr, nullptr, true).MapBytes();
}

// Fills ExpattMapBytes() bytes at `map`, which are aligned to 16. T is the type of the problem's maps.
template <typename T, typename Launch>
void RunExpattMapOnDevice(const ExpattProblem& p, void* map, const Launch& launch) {
  const ExpattStoredMap run = {ExpattDirect(p, p.x, p.out, nullptr, nullptr, true), map};
  launch(ExpattMapKernel<T>, static_cast<unsigned>(run.direct.position_blocks), 1, ExpattDirect::kThreads,
         static_cast<size_t>(PositionsOf(p.extent)) * sizeof(float), run);
}

}  // namespace saccade::kernels
