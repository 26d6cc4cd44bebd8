#include "kernels/tile/tile.h"

#include <atomic>
#include <cstring>
#include <type_traits>

#include "kernels/tile/bfloat16_product.h"
#include "kernels/tile/tile_tables.h"

namespace saccade::kernels {
namespace {

template <typename Void>
Void* Advance(Void* data, Dtype dtype, int64_t elements) {
  using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
  return static_cast<Byte*>(data) + elements * BytesOf(dtype);
}

// Returns true if consecutive valid positions of a sample are always one stride of the last dimension apart.
template <typename Map>
bool IsFlat(const Map& map, const ValidBox& box) {
  int64_t expected = map.spatial_stride[2] * box.size(2);
  for (int d = 1; d >= 0; --d) {
    if (box.size(d) == 1) continue;
    if (map.spatial_stride[d] != expected) return false;
    expected *= box.size(d);
  }
  return true;
}

// Calls visit(strip, offset from begin, length) for each stretch of evenly spaced positions.
template <typename StripType, typename Map, typename Visit>
void ForStrips(const Map& map, Dtype dtype, const MapBlock& block, const Visit& visit) {
  const int64_t at = block.sample * map.batch_stride + block.channel * map.channel_stride;
  StripType strip{nullptr, dtype, map.channel_stride, map.spatial_stride[2]};
  if (IsFlat(map, block.box)) {
    strip.data = Advance(map.data, dtype, at + block.begin * map.spatial_stride[2]);
    visit(strip, int64_t{0}, block.count);
    return;
  }
  block.box.ForRows(block.begin, block.begin + block.count,
                    [&](int64_t plane, int64_t row, int64_t column, int64_t offset, int64_t length) {
                      strip.data = Advance(map.data, dtype,
                                           at + plane * map.spatial_stride[0] + row * map.spatial_stride[1] +
                                               column * map.spatial_stride[2]);
                      visit(strip, offset, length);
                    });
}

std::atomic<BFloat16Product (*)()> product_source = nullptr;

#if defined(__x86_64__)
const TileCode<float>& BFloat16TileCode() {
  static const TileCode<float>& code = []() -> const TileCode<float>& {
    // Products of blocks by a library are with AMX, which is newer than all that the limit names.
    BFloat16Product (*const source)() = MayUseAmx() ? product_source.load() : nullptr;
    const BFloat16Product product = source == nullptr ? nullptr : source();
    return product == nullptr ? Avx512BFloat16TileCode() : BlockTileCode(product);
  }();
  return code;
}
#endif

}  // namespace

void SetBFloat16ProductSource(BFloat16Product (*source)()) { product_source.store(source); }

template <>
const TileCode<float>& TileCodeFor<float>([[maybe_unused]] CpuIsa isa, [[maybe_unused]] Dtype dtype) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx2) return Avx2TileCode();
  if (isa == CpuIsa::kAvx512 && dtype == Dtype::kBFloat16 && MultipliesBFloat16()) return BFloat16TileCode();
  if (isa == CpuIsa::kAvx512) return Avx512TileCode();
#endif
  return PortableTileCode();
}

template <>
const TileCode<double>& TileCodeFor<double>(CpuIsa /*isa*/, Dtype /*dtype*/) {
  return DoubleTileCode();
}

template <typename A>
void LoadTile(const TileCode<A>& code, const FeatureMap& map, Dtype dtype, const MapBlock& block, A* tile,
              int64_t row) {
  ForStrips<Strip>(map, dtype, block, [&](const Strip& strip, int64_t offset, int64_t length) {
    code.load(strip, block.channels, length, tile + offset, row);
  });
}

template <typename A>
void LoadPositions(const TileCode<A>& code, const FeatureMap& map, Dtype dtype, const MapBlock& block,
                   A* matrix, int64_t row) {
  ForStrips<Strip>(map, dtype, block, [&](const Strip& strip, int64_t offset, int64_t length) {
    code.load_transposed(strip, block.channels, length, matrix + offset * row, row);
  });
}

template <typename A>
void StoreTile(const TileCode<A>& code, const A* tile, const OutputMap& map, Dtype dtype,
               const MapBlock& block, int64_t row) {
  ForStrips<OutputStrip>(map, dtype, block, [&](const OutputStrip& strip, int64_t offset, int64_t length) {
    code.store(tile + offset, row, block.channels, length, strip);
  });
}

template void LoadTile(const TileCode<float>&, const FeatureMap&, Dtype, const MapBlock&, float*, int64_t);
template void LoadTile(const TileCode<double>&, const FeatureMap&, Dtype, const MapBlock&, double*, int64_t);
template void LoadPositions(const TileCode<float>&, const FeatureMap&, Dtype, const MapBlock&, float*,
                            int64_t);
template void LoadPositions(const TileCode<double>&, const FeatureMap&, Dtype, const MapBlock&, double*,
                            int64_t);
template void StoreTile(const TileCode<float>&, const float*, const OutputMap&, Dtype, const MapBlock&,
                        int64_t);
template void StoreTile(const TileCode<double>&, const double*, const OutputMap&, Dtype, const MapBlock&,
                        int64_t);

void ZeroPadding(const OutputMap& map, Dtype dtype, int64_t sample, const Extent& extent, const ValidBox& box,
                 int64_t channels) {
  if (box.whole()) return;
  const size_t bytes = static_cast<size_t>(BytesOf(dtype));
  for (int64_t z = 0; z < extent.size[0]; ++z) {
    for (int64_t y = 0; y < extent.size[1]; ++y) {
      const bool inside = z < box.size(0) && y < box.size(1);
      for (int64_t x = inside ? box.size(2) : 0; x < extent.size[2]; ++x) {
        const int64_t at = sample * map.batch_stride + z * map.spatial_stride[0] + y * map.spatial_stride[1] +
                           x * map.spatial_stride[2];
        for (int64_t c = 0; c < channels; ++c) {
          std::memset(Advance(map.data, dtype, at + c * map.channel_stride), 0, bytes);
        }
      }
    }
  }
}

}  // namespace saccade::kernels
