#include "models/networks/unet3d/units.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/parallel.h"

namespace saccade::models {
namespace {

constexpr double kLowPercentile = 2;
constexpr double kHighPercentile = 99.8;
constexpr double kMinRange = 1e-20;

// Maps floats to unsigned numbers in the same order.
uint32_t Key(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

float Value(uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000U) != 0 ? key & 0x7FFFFFFFU : ~key);
}

using Histogram = std::vector<int64_t>;

// Counts values by 16 bits of their keys: by the upper half if `high` is -1, otherwise by the lower half of
// those whose upper half is `high`.
Histogram Count(const float* values, int64_t count, int64_t high) {
  const kernels::Parallel parallel = kernels::TorchParallel();
  std::vector<Histogram> parts(static_cast<size_t>(parallel.threads), Histogram(1 << 16));
  parallel.run(count, 1 << 16, [&](int64_t begin, int64_t end, int thread) {
    Histogram& part = parts[static_cast<size_t>(thread)];
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t key = Key(values[i]);
      if (high < 0) {
        ++part[key >> 16];
      } else if (key >> 16 == static_cast<uint32_t>(high)) {
        ++part[key & 0xFFFF];
      }
    }
  });
  for (size_t thread = 1; thread < parts.size(); ++thread) {
    std::transform(parts[0].begin(), parts[0].end(), parts[thread].begin(), parts[0].begin(), std::plus<>());
  }
  return parts[0];
}

// Returns the bucket that contains `rank`, and makes `rank` relative to the bucket.
uint32_t BucketOf(const Histogram& histogram, int64_t& rank) {
  uint32_t bucket = 0;
  while (rank >= histogram[bucket]) rank -= histogram[bucket++];
  return bucket;
}

// Returns the values of ascending ranks, counted from 0.
std::vector<float> Ranked(const float* values, int64_t count, const std::vector<int64_t>& ranks) {
  const Histogram upper = Count(values, count, -1);
  std::vector<float> ranked;
  Histogram lower;
  int64_t counted = -1;
  for (int64_t rank : ranks) {
    const uint32_t high = BucketOf(upper, rank);
    if (high != counted) lower = Count(values, count, counted = high);
    ranked.push_back(Value(high << 16 | BucketOf(lower, rank)));
  }
  return ranked;
}

}  // namespace

Units PercentileUnits(const at::Tensor& volume) {
  const int64_t count = volume.numel();
  std::array<double, 2> places{};
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = (i == 0 ? kLowPercentile : kHighPercentile) / 100 * static_cast<double>(count - 1);
    const auto rank = static_cast<int64_t>(places[i]);
    ranks.push_back(rank);
    ranks.push_back(std::min(rank + 1, count - 1));
  }
  const std::vector<float> ranked = Ranked(volume.const_data_ptr<float>(), count, ranks);
  const auto between = [&](size_t i) {
    const auto below = static_cast<double>(ranked[2 * i]);
    return below + (places[i] - std::floor(places[i])) * (static_cast<double>(ranked[2 * i + 1]) - below);
  };
  return {.offset = between(0), .scale = between(1) - between(0) + kMinRange};
}

at::Tensor Normalised(const at::Tensor& volume, const Units& units, const VolumeSides& sides) {
  const int64_t depth = volume.size(0);
  const int64_t height = volume.size(1);
  const int64_t width = volume.size(2);
  at::Tensor padded = at::empty({1, 1, sides[0], sides[1], sides[2]}, at::kFloat);
  const auto* from = volume.const_data_ptr<float>();
  auto* to = padded.mutable_data_ptr<float>();
  kernels::TorchParallel().run(sides[0] * sides[1], 16, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t d = std::min(line / sides[1], depth - 1);
      const int64_t h = std::min(line % sides[1], height - 1);
      const float* source = from + (d * height + h) * width;
      float* target = to + line * sides[2];
      for (int64_t w = 0; w < width; ++w) {
        target[w] = static_cast<float>((static_cast<double>(source[w]) - units.offset) / units.scale);
      }
      std::fill(target + width, target + sides[2], target[width - 1]);
    }
  });
  return padded;
}

void ToUnits(at::Tensor& values, const Units& units) {
  auto* data = values.mutable_data_ptr<float>();
  kernels::TorchParallel().run(values.numel(), 1 << 14, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t i = begin; i < end; ++i) {
      data[i] = static_cast<float>(units.offset + units.scale * static_cast<double>(data[i]));
    }
  });
}

}  // namespace saccade::models
