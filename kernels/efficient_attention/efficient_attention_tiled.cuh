// The launches of the tiled kernels of efficient attention (efficient_attention_tiled_run.cuh).
#pragma once

#include <algorithm>

#include "kernels/device/attend_merge.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/efficient_attention/efficient_attention_apply.cuh"
#include "kernels/efficient_attention/efficient_attention_float32.cuh"
#include "kernels/efficient_attention/efficient_attention_fold.cuh"
#include "kernels/efficient_attention/efficient_attention_gather.cuh"
#include "kernels/efficient_attention/efficient_attention_wide.cuh"
#include "kernels/efficient_attention/efficient_attention_wide_float32.cuh"

namespace saccade::kernels {

// The most dynamic shared memory that a block needs for tiles of `kChannels` channels, in either layout.
template <int kChannels>
constexpr size_t EaTiledSharedBytesOf(Dtype dtype) {
  if (dtype == Dtype::kFloat32) {
    return std::max(EaFloatShared<kChannels, false>::kBytes, EaFloatShared<kChannels, true>::kBytes);
  }
  return std::max(
      {EaGatherShared<uint16_t, kChannels, false>::kBytes, EaGatherShared<uint16_t, kChannels, true>::kBytes,
       EaApplyShared<uint16_t, kChannels, false>::kBytes, EaApplyShared<uint16_t, kChannels, true>::kBytes});
}

// The same for the kernels of wide maps.
template <typename T>
constexpr size_t EaWideSharedBytes() {
  return std::max({EaWideLogitsShared<T, false>::kBytes, EaWideLogitsShared<T, true>::kBytes,
                   EaWideGatherShared<T, false>::kBytes, EaWideGatherShared<T, true>::kBytes,
                   EaWideApplyShared<T, false>::kBytes, EaWideApplyShared<T, true>::kBytes});
}

// The most dynamic shared memory that a block needs if channels or out_channels are `widest`. For 16-bit maps
// it lets two blocks share a multiprocessor that has 227 KB. Chips with 99 KB for a block, as L4 and A10,
// have enough for float32 maps of up to 64 channels and 16-bit maps of up to 128 or more than 256.
constexpr size_t EaTiledSharedBytes(Dtype dtype, int64_t widest) {
  return widest <= 64               ? EaTiledSharedBytesOf<64>(dtype)
         : widest <= 128            ? EaTiledSharedBytesOf<128>(dtype)
         : widest <= kEaMaxChannels ? EaTiledSharedBytesOf<kEaMaxChannels>(dtype)
         : dtype == Dtype::kFloat32 ? EaWideSharedBytes<float>()
                                    : EaWideSharedBytes<uint16_t>();
}

inline bool IsChannelsLast(const EfficientAttentionProblem& p) {
  return p.x.channel_stride == 1 && p.channels > 1;
}

// Returns the problem of `count` samples from `first` on.
template <typename T>
EfficientAttentionProblem EaSamplesOf(EfficientAttentionProblem p, int64_t first, int64_t count) {
  p.batch = count;
  p.x.data = static_cast<const T*>(p.x.data) + first * p.x.batch_stride;
  p.out.data = static_cast<T*>(p.out.data) + first * p.out.batch_stride;
  if (p.extent.valid != nullptr) p.extent.valid += first * p.extent.spatial_dims;
  return p;
}

template <typename T, int kChannels, bool kChannelsLast, typename Launch>
void RunEaTiledAs(const EaTiled& run, const Launch& launch) {
  const auto blocks = static_cast<unsigned>(run.blocks * run.p.batch);
  const auto keys = static_cast<unsigned>(run.p.key_channels * run.p.batch);
  if constexpr (sizeof(T) == 4) {
    using Shared = EaFloatShared<kChannels, kChannelsLast>;
    launch(EaFloatGatherKernel<kChannels, kChannelsLast>, blocks, 1, kEaThreads<T>, Shared::kBytes, run);
    launch(EaFoldKernel<T>, keys, 1, kFoldThreads, 0, run);
    launch(EaFloatApplyKernel<kChannels, kChannelsLast>, blocks, 1, kEaThreads<T>, Shared::kBytes, run);
  } else {
    launch(EaGatherKernel<T, kChannels, kChannelsLast>, blocks, 1, kEaThreads<T>,
           EaGatherShared<T, kChannels, kChannelsLast>::kBytes, run);
    launch(EaFoldKernel<T>, keys, 1, kFoldThreads, 0, run);
    launch(EaApplyKernel<T, kChannels, kChannelsLast>, blocks, 1, kEaThreads<T>,
           EaApplyShared<T, kChannels, kChannelsLast>::kBytes, run);
  }
}

template <typename T, bool kChannelsLast, typename Launch>
void RunEaWideAs(const EaTiled& run, const Launch& launch) {
  const int64_t batch = run.p.batch;
  const auto launch_of = [&](void (*kernel)(EaTiled), int64_t blocks, size_t shared) {
    launch(kernel, static_cast<unsigned>(blocks), 1, kEaThreads<T>, shared, run);
  };
  launch_of(EaWideWeightsKernel<T>, run.Slices() * EaWideWeights<T>::kBlocks, 0);
  const int64_t logits_blocks = batch * run.tiles;
  constexpr size_t kLogitsBytes = EaWideLogitsShared<T, kChannelsLast>::kBytes;
  const int64_t gather_blocks = batch * run.blocks * run.slabs;
  constexpr size_t kGatherBytes = EaWideGatherShared<T, kChannelsLast>::kBytes;
  const int64_t apply_blocks = batch * run.out_blocks * run.out_slabs;
  constexpr size_t kApplyBytes = EaWideApplyShared<T, kChannelsLast>::kBytes;
  const auto fold_blocks = static_cast<unsigned>(run.p.key_channels * batch);
  if constexpr (sizeof(T) == 4) {
    launch_of(EaWideFloatLogitsKernel<kChannelsLast>, logits_blocks, kLogitsBytes);
    launch_of(EaWideFloatGatherKernel<kChannelsLast>, gather_blocks, kGatherBytes);
    launch(EaFoldKernel<T>, fold_blocks, 1, kFoldThreads, 0, run);
    launch_of(EaWideFloatApplyKernel<kChannelsLast>, apply_blocks, kApplyBytes);
  } else {
    launch_of(EaWideLogitsKernel<T, kChannelsLast>, logits_blocks, kLogitsBytes);
    launch_of(EaWideGatherKernel<T, kChannelsLast>, gather_blocks, kGatherBytes);
    launch(EaFoldKernel<T>, fold_blocks, 1, kFoldThreads, 0, run);
    launch_of(EaWideApplyKernel<T, kChannelsLast>, apply_blocks, kApplyBytes);
  }
}

template <typename T, int kChannels, typename Launch>
void RunEaTiledWith(const EaTiled& run, const Launch& launch) {
  if (IsChannelsLast(run.p)) {
    RunEaTiledAs<T, kChannels, true>(run, launch);
  } else {
    RunEaTiledAs<T, kChannels, false>(run, launch);
  }
}

template <typename T, typename Launch>
void RunEaTiled(const EaTiled& run, const Launch& launch) {
  const EfficientAttentionProblem& p = run.p;
  const int64_t positions = PositionsOf(p.extent);
  if (positions == 0 || p.batch == 0) return;
  if (run.group < p.batch) {
    for (int64_t first = 0; first < p.batch; first += run.group) {
      const int64_t count = std::min(run.group, p.batch - first);
      RunEaTiled<T>(EaTiled(EaSamplesOf<T>(p, first, count), run.workspace), launch);
    }
    return;
  }
  if (p.extent.valid != nullptr) {
    const AttendClear clear = {RowsOf(p.out, p.dtype, 0), p.extent, 1, p.out_channels, positions};
    launch(AttendClearKernel<T>, p.batch * Attend::Tiles(positions), kBlockThreads, clear);
  }
  if (run.wide) {
    IsChannelsLast(p) ? RunEaWideAs<T, true>(run, launch) : RunEaWideAs<T, false>(run, launch);
  } else if (run.width == 64) {
    RunEaTiledWith<T, 64>(run, launch);
  } else if (run.width == 128) {
    RunEaTiledWith<T, 128>(run, launch);
  } else {
    RunEaTiledWith<T, kEaMaxChannels>(run, launch);
  }
}

#if defined(__CUDACC__)
extern template void RunEaTiled<float>(const EaTiled&, const StreamLaunch&);
extern template void RunEaTiled<DeviceBFloat16>(const EaTiled&, const StreamLaunch&);
extern template void RunEaTiled<DeviceHalf>(const EaTiled&, const StreamLaunch&);
#endif

}  // namespace saccade::kernels
