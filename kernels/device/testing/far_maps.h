// Maps whose samples and channels are more than 2^32 elements apart, for tests that no offset is computed in
// 32 bits. A map is a range of addresses of which only the pages that hold values take memory.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/feature_map.h"

namespace saccade::kernels {

#ifdef SACCADE_ASAN
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif

// A range of addresses, at first all zeros.
class AddressRange {
 public:
  // If the system does not give the range, data() is null and error() says why.
  explicit AddressRange(size_t bytes) : bytes_(bytes) {
    if (kHasAddressSanitizer) {
      error_ = "AddressSanitizer keeps a shadow of all addresses, which bounds them";
      return;
    }
    void* const got =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
      error_ = std::string("mmap: ") + std::strerror(errno) +
               ". A limit of the address space (ulimit -v) or vm.overcommit_memory = 2 has this effect";
      return;
    }
    data_ = got;
    // A huge page would take 2 MiB for a few values. Kernels without huge pages refuse the advice.
    madvise(data_, bytes_, MADV_NOHUGEPAGE);
  }
  ~AddressRange() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  void* data() const { return data_; }
  const std::string& error() const { return error_; }

 private:
  size_t bytes_;
  void* data_ = nullptr;
  std::string error_;
};

// The maps of one problem, moved apart. T is their type.
template <typename T>
class FarMaps {
 public:
  // Elements between samples and between channels. In 32 bits it would be 8: a wrong offset then leads to
  // another element of the map, so that it shows as a wrong result.
  static constexpr int64_t kApart = (int64_t{1} << 32) + 8;

  explicit FarMaps(int64_t batch) : batch_(batch) {}

  // Replaces `map` by one with the same values, whose samples, and channels unless they are adjacent, are
  // kApart apart. Maps with the same memory stay one map.
  void Move(FeatureMap& map, int64_t channels, const Extent& extent) {
    for (const Moved& other : moved_) {
      if (other.near.data == map.data) {
        map = Readable(other.far);
        return;
      }
    }
    const Moved* const moved = Place(map, channels, extent, map.channel_stride != 1);
    if (moved == nullptr) return;
    ForEach(*moved, [](const T& near, T& far) { far = near; });
    map = Readable(moved->far);
  }

  // The same for a result, whose elements are NaN at first. If `channels_too` is false, its channels stay
  // where they are.
  void MoveResult(OutputMap& map, int64_t channels, const Extent& extent, bool channels_too = true) {
    Moved* const moved = Place(Readable(map), channels, extent, channels_too && map.channel_stride != 1);
    if (moved == nullptr) return;
    moved->is_result = true;
    ForEach(*moved, [](const T&, T& far) { far = T(std::numeric_limits<float>::quiet_NaN()); });
    map = moved->far;
  }

  // Returns why a map could not be moved, or an empty string.
  const std::string& error() const { return error_; }

  // Returns the number of elements of moved results that are NaN, or whose bits are not those of the result
  // that was moved.
  int64_t Differences() const {
    int64_t differences = 0;
    for (const Moved& moved : moved_) {
      if (!moved.is_result) continue;
      ForEach(moved, [&](const T& near, const T& far) {
        const bool same =
            __builtin_memcmp(&near, &far, sizeof(T)) == 0 && !std::isnan(static_cast<float>(far));
        differences += same ? 0 : 1;
      });
    }
    return differences;
  }

 private:
  struct Moved {
    FeatureMap near;
    OutputMap far;
    int64_t channels;
    Extent extent;
    std::unique_ptr<AddressRange> memory;  // of `far`
    bool is_result = false;
  };

  static FeatureMap Readable(const OutputMap& map) {
    return {map.data,
            map.batch_stride,
            map.channel_stride,
            {map.spatial_stride[0], map.spatial_stride[1], map.spatial_stride[2]}};
  }

  // Takes memory for a map that is moved. Returns null if there is none.
  Moved* Place(const FeatureMap& near, int64_t channels, const Extent& extent, bool channels_too) {
    OutputMap far;
    far.channel_stride = channels_too ? kApart : near.channel_stride;
    far.batch_stride = channels_too ? channels * kApart : kApart;
    int64_t elements = (batch_ - 1) * far.batch_stride + (channels - 1) * far.channel_stride + 1;
    for (int d = 0; d < kMaxSpatialDims; ++d) {
      far.spatial_stride[d] = near.spatial_stride[d];
      elements += (extent.size[d] - 1) * far.spatial_stride[d];
    }
    auto memory = std::make_unique<AddressRange>(static_cast<size_t>(elements) * sizeof(T));
    if (memory->data() == nullptr) {
      error_ = "no range of " + std::to_string(elements) + " elements: " + memory->error();
      return nullptr;
    }
    far.data = memory->data();
    moved_.push_back({near, far, channels, extent, std::move(memory), false});
    return &moved_.back();
  }

  // Calls visit(element of moved.near, the same element of moved.far).
  template <typename Visit>
  void ForEach(const Moved& moved, const Visit& visit) const {
    const auto at = [](const auto& map, int64_t b, int64_t c, const int64_t(&place)[kMaxSpatialDims]) {
      int64_t offset = b * map.batch_stride + c * map.channel_stride;
      for (int d = 0; d < kMaxSpatialDims; ++d) offset += place[d] * map.spatial_stride[d];
      return offset;
    };
    const int64_t(&size)[kMaxSpatialDims] = moved.extent.size;
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t c = 0; c < moved.channels; ++c) {
        for (int64_t n = 0; n < PositionsOf(moved.extent); ++n) {
          const int64_t place[] = {n / size[2] / size[1], n / size[2] % size[1], n % size[2]};
          visit(static_cast<const T*>(moved.near.data)[at(moved.near, b, c, place)],
                static_cast<T*>(moved.far.data)[at(moved.far, b, c, place)]);
        }
      }
    }
  }

  int64_t batch_;
  std::vector<Moved> moved_;
  std::string error_;
};

}  // namespace saccade::kernels
