// The launches of the tiled kernels of efficient attention (efficient_attention_tiled_run.cuh).
#pragma once

#include <algorithm>

#include "kernels/device/attend_merge.cuh"
#include "kernels/device/launch.cuh"
#include "kernels/efficient_attention/efficient_attention_apply.cuh"
#include "kernels/efficient_attention/efficient_attention_float32.cuh"
#include "kernels/efficient_attention/efficient_attention_fold.cuh"
#include "kernels/efficient_attention/efficient_attention_gather.cuh"

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

// The most dynamic shared memory that a block needs for tiles of `width` channels (EaTiled::width). For
// 16-bit maps it lets two blocks share a multiprocessor that has 227 KB. Chips with 99 KB for a block, as L4
// and A10, have enough for 16-bit maps of up to 128 channels and float32 maps of up to 64.
constexpr size_t EaTiledSharedBytes(Dtype dtype, int64_t width) {
  return width == 64    ? EaTiledSharedBytesOf<64>(dtype)
         : width == 128 ? EaTiledSharedBytesOf<128>(dtype)
                        : EaTiledSharedBytesOf<kEaMaxChannels>(dtype);
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

template <typename T, int kChannels, typename Launch>
void RunEaTiledWith(const EaTiled& run, const Launch& launch) {
  if (run.p.x.channel_stride == 1 && run.p.channels > 1) {
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
  if (p.extent.valid != nullptr) {
    const AttendClear clear = {RowsOf(p.out, p.dtype, 0), p.extent, 1, p.out_channels, positions};
    launch(AttendClearKernel<T>, p.batch * Attend::Tiles(positions), kBlockThreads, clear);
  }
  if (run.width == 64) {
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
