// Compares the operator on tensors with the differentiable reference in float64, and checks its properties.
#include "kernels/roi_align/roi_align.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/common/testing/tensors.h"
#include "kernels/roi_align/roi_align_impl.h"

namespace saccade::kernels {
namespace {

using testing::HasSubstr;

// Returns [count, 5] or, for a line, [count, 3]: small and large regions, inside, across the border and
// outside.
at::Tensor RandomRegions(int64_t count, int64_t batch, at::IntArrayRef size) {
  std::vector<at::Tensor> low, high;
  for (int64_t d = static_cast<int64_t>(size.size()) - 1; d >= 0; --d) {
    const at::Tensor middle = (at::rand({count, 1}, at::kDouble) * 1.4 - 0.2) * size[d];
    const at::Tensor extent = at::rand({count, 1}, at::kDouble).square() * size[d] + 0.1;
    low.push_back(middle - extent / 2);
    high.push_back(middle + extent / 2);
  }
  std::vector<at::Tensor> columns = {at::arange(count, at::kDouble).remainder(batch).unsqueeze(1)};
  columns.insert(columns.end(), low.begin(), low.end());
  columns.insert(columns.end(), high.begin(), high.end());
  // Rounded so that float32 represents them exactly, and the reference uses the same positions.
  return (at::cat(columns, 1) * 16).round() / 16;
}

// One random call; `Run` computes it in the map's type, `Exact` with the reference in float64.
struct Case {
  Case(unsigned seed, at::ScalarType dtype) {
    std::mt19937 random(seed);
    const auto pick = [&](int from, int to) {
      return std::uniform_int_distribution<int64_t>(from, to)(random);
    };
    temporal = pick(0, 2) == 0;
    std::vector<int64_t> shape = {pick(1, 3), pick(1, 40)};
    for (int64_t d = 0; d < (temporal ? 3 : 2); ++d) {
      shape.push_back(pick(1, temporal && d > 0 ? 6 : 30));
      pooled.push_back(pick(1, temporal && d > 0 ? 3 : 9));
    }
    const auto memory = static_cast<Memory>(pick(0, 5));
    map = RandomMap(shape, dtype, memory);
    sampling_ratio = pick(-1, 3);
    aligned = pick(0, 1) != 0;
    scale = pick(0, 1) != 0 ? 0.5 : 1.0;
    std::vector<int64_t> size = {static_cast<int64_t>(static_cast<double>(shape[2]) / scale)};
    if (!temporal) size.push_back(static_cast<int64_t>(static_cast<double>(shape[3]) / scale));
    rois = RandomRegions(pick(1, 12), shape[0], size);
    std::ostringstream text;
    text << map.sizes() << " " << rois.size(0) << " regions, memory=" << static_cast<int>(memory)
         << " ratio=" << sampling_ratio << " aligned=" << aligned;
    name = text.str();
  }
  RoiAlignArguments Arguments(at::ScalarType dtype) const {
    const at::Tensor x = map.to(dtype);
    const at::Tensor r = rois.to(dtype == at::kDouble ? at::kDouble : at::kFloat);
    return temporal
               ? RoiAlign3dCall(x, r, scale, pooled[0], pooled[1], pooled[2], sampling_ratio, aligned, {})
               : RoiAlignCall(x, r, scale, pooled[0], pooled[1], sampling_ratio, aligned, {});
  }
  at::Tensor Run() const {
    const at::Tensor r = rois.to(map.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    return temporal ? roi_align_3d(map, r, scale, pooled[0], pooled[1], pooled[2], sampling_ratio, aligned)
                    : roi_align(map, r, scale, pooled[0], pooled[1], sampling_ratio, aligned);
  }
  at::Tensor map, rois;
  std::vector<int64_t> pooled;
  bool temporal, aligned;
  int64_t sampling_ratio;
  double scale;
  std::string name;
};

class RoiAlignTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(RoiAlignTypes, MatchesTheReference) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Case c(seed, GetParam());
    SCOPED_TRACE(c.name);
    const at::Tensor got = c.Run();
    EXPECT_EQ(got.scalar_type(), GetParam());
    EXPECT_TRUE(got.is_contiguous(c.map.suggest_memory_format()));
    const at::Tensor expected = RoiAlignReference(c.Arguments(at::kDouble));
    const double composed = RelativeError(RoiAlignReference(c.Arguments(GetParam())), expected);
    // Sample positions are rounded too (torchvision's definition), which on a noisy map may cost more than
    // AllowedError's fixed bound; the composition has the same error. roi_align_cpu_test.cc tests with fixed
    // positions.
    const double allowed = AllowedError(GetParam(), composed);
    EXPECT_LE(RelativeError(got, expected),
              GetParam() == at::kFloat ? std::max(allowed, 2 * composed) : allowed);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoiAlignTypes, testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

TEST(RoiAlignTest, ARegionDoesNotDependOnTheOthersOrTheThreads) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor map = RandomTensor({2, 70, 25, 31}, at::kFloat).contiguous(format);
    const at::Tensor rois = RandomRegions(90, 2, {50, 62}).to(at::kFloat);
    const auto run = [&](const at::Tensor& r) { return roi_align(map, r, 0.5, 7, 7); };
    const int threads = at::get_num_threads();
    const at::Tensor all = run(rois);
    for (const int count : {1, 2, 3, 7}) {
      at::set_num_threads(count);
      EXPECT_TRUE(SameBits(run(rois), all)) << count << " threads";
    }
    at::set_num_threads(threads);
    for (int64_t k = 0; k < 90; k += 7) {
      EXPECT_TRUE(SameBits(run(rois.narrow(0, k, 1)), all.narrow(0, k, 1))) << k;
      // Also alone in its batch.
      at::Tensor roi = rois.narrow(0, k, 1).clone();
      const auto sample = static_cast<int64_t>(roi[0][0].item<float>());
      roi.select(1, 0).zero_();
      EXPECT_TRUE(SameBits(roi_align(map.narrow(0, sample, 1), roi, 0.5, 7, 7), all.narrow(0, k, 1)));
    }
  }
}

TEST(RoiAlignTest, APaddedMapIsTheCroppedMap) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const at::Tensor map = RandomTensor({2, 35, 21, 27}, dtype).contiguous(format);
      at::Tensor padded = at::full({2, 35, 24, 40}, std::numeric_limits<double>::quiet_NaN(), map.options())
                              .contiguous(format);
      padded.narrow(2, 0, 21).narrow(3, 0, 27).copy_(map);
      const at::Tensor valid = at::tensor({21, 27, 21, 27}, at::kLong).view({2, 2});
      const at::Tensor rois = RandomRegions(40, 2, {42, 54}).to(at::kFloat);
      for (const int64_t ratio : {-1, 2}) {
        EXPECT_TRUE(SameBits(roi_align(padded, rois, 0.5, 5, 9, ratio, true, valid),
                             roi_align(map, rois, 0.5, 5, 9, ratio, true)));
        EXPECT_TRUE(
            SameBits(roi_align_pyramid({{padded}, {0.5}}, rois, 5, 9, ratio, true, valid.unsqueeze(0)),
                     roi_align(map, rois, 0.5, 5, 9, ratio, true)));
      }
    }
  }
}

TEST(RoiAlignTest, APaddedVideoIsTheCroppedVideo) {
  const at::Tensor map = RandomTensor({2, 5, 11, 4, 7}, at::kFloat);
  at::Tensor padded = at::full({2, 5, 16, 6, 9}, std::numeric_limits<double>::quiet_NaN());
  padded.narrow(2, 0, 11).narrow(3, 0, 4).narrow(4, 0, 7).copy_(map);
  const at::Tensor valid = at::tensor({11, 4, 7}, at::kLong).expand({2, 3});
  const at::Tensor rois = RandomRegions(20, 2, {22}).to(at::kFloat);
  EXPECT_TRUE(SameBits(roi_align_3d(padded, rois, 0.5, 4, 2, 3, -1, false, valid),
                       roi_align_3d(map, rois, 0.5, 4, 2, 3)));
}

TEST(RoiAlignTest, APyramidIsItsLevels) {
  const std::vector<at::Tensor> levels = {RandomTensor({2, 20, 64, 80}, at::kFloat),
                                          RandomTensor({2, 20, 32, 40}, at::kFloat),
                                          RandomTensor({2, 20, 16, 20}, at::kFloat)};
  const std::vector<double> scales = {0.25, 0.125, 0.0625};
  const at::Tensor boxes = RandomRegions(200, 2, {256, 320}).to(at::kFloat);
  // At a canonical scale at which every level gets some of them.
  const auto call = RoiAlignPyramidCall(levels, boxes, scales, 7, 7, 2, false, 112, 4, {});
  const at::Tensor level_of = RoiLevels(call);
  const at::Tensor got = roi_align_pyramid({levels, scales, 112, 4}, boxes, 7, 7, 2);
  for (int64_t l = 0; l < 3; ++l) {
    const at::Tensor of_level = level_of.eq(l).nonzero().squeeze(1);
    ASSERT_GT(of_level.numel(), 0);
    EXPECT_TRUE(SameBits(got.index_select(0, of_level),
                         roi_align(levels[l], boxes.index_select(0, of_level), scales[l], 7, 7, 2)));
  }
  EXPECT_LE(RelativeError(got, RoiAlignReference(call).to(at::kDouble)), 1e-5);
}

TEST(RoiAlignTest, ABoxOfNegativeAreaHasNoLevel) {
  const std::vector<at::Tensor> levels = {at::full({1, 2, 8, 8}, 1.0), at::full({1, 2, 4, 4}, 1.0)};
  const at::Tensor boxes = at::tensor({0.0f, 20.0f, 1.0f, 1.0f, 20.0f}).view({1, 5});
  EXPECT_EQ(roi_align_pyramid({levels, {0.25, 0.125}}, boxes, 2, 2).abs().max().item<float>(), 0);
}

TEST(RoiAlignTest, NothingGivesNothing) {
  const at::Tensor map = at::zeros({1, 3, 4, 5});
  EXPECT_EQ(roi_align(map, at::zeros({0, 5}), 1, 7, 6).sizes(), at::IntArrayRef({0, 3, 7, 6}));
  EXPECT_EQ(roi_align_pyramid({{map}, {1}}, at::zeros({0, 5}), 7, 6).sizes(), at::IntArrayRef({0, 3, 7, 6}));
  EXPECT_EQ(roi_align_3d(map.unsqueeze(2), at::zeros({0, 3}), 1, 2, 7, 6).sizes(),
            at::IntArrayRef({0, 3, 2, 7, 6}));
  EXPECT_EQ(roi_align(at::zeros({1, 3, 0, 5}), at::zeros({2, 5}), 1, 2, 2).abs().max().item<float>(), 0);
}

TEST(RoiAlignTest, RegionsFarAwayAndHugeAreZeroOrAverages) {
  const at::Tensor map = at::full({1, 3, 30, 40}, 2.0);
  const at::Tensor rois = at::tensor({0.0f, -4000.0f, -4000.0f, -3000.0f, -3000.0f,  //
                                      0.0f, -400.0f, -400.0f, 440.0f, 430.0f,        //
                                      0.0f, 10.0f, 10.0f, 10.0f, 10.0f})
                              .view({3, 5});
  const at::Tensor got = roi_align(map, rois, 1, 3, 3);
  EXPECT_EQ(got[0].abs().max().item<float>(), 0);
  EXPECT_GT(got[1][0][1][1].item<float>(), 0);
  EXPECT_NEAR(got[2].min().item<float>(), 2, 1e-6);
}

TEST(RoiAlignTest, ErrorsNameTheArgumentWhatWasExpectedAndWhatCame) {
  const at::Tensor map = at::zeros({2, 3, 8, 9});
  const at::Tensor rois = at::zeros({4, 5});
  const auto error = [&](const at::Tensor& x, const at::Tensor& r, int64_t bins = 2,
                         const OptionalTensor& valid = {}) {
    return ErrorOf([&] { roi_align(x, r, 0.5, bins, 2, -1, false, valid); });
  };
  const auto with = [&](int64_t column, float value) {
    at::Tensor changed = rois.clone();
    changed[2][column] = value;
    return error(map, changed);
  };
  EXPECT_THAT(with(0, 2),
              HasSubstr("roi_align: argument 'rois' at [2, 0] should be a sample in 0..1, got 2"));
  EXPECT_THAT(with(0, -1), HasSubstr("argument 'rois' at [2, 0] should be a sample in 0..1, got -1"));
  EXPECT_THAT(with(3, std::numeric_limits<float>::infinity()),
              HasSubstr("argument 'rois' at [2, 3] should be finite, got inf"));
  EXPECT_THAT(with(3, std::numeric_limits<float>::quiet_NaN()), HasSubstr("should be finite, got nan"));
  EXPECT_THAT(with(3, 1e9f), HasSubstr("argument 'rois' at [2] should take at most 65536 samples per bin"));
  EXPECT_THAT(error(map, at::zeros({4, 4})),
              HasSubstr("argument 'rois' should have shape [4, 5], got [4, 4]"));
  EXPECT_THAT(error(map, rois.to(at::kDouble)), HasSubstr("argument 'rois' should be float32, got float64"));
  EXPECT_THAT(error(map[0], rois), HasSubstr("argument 'features' should have 4 dimensions, got [3, 8, 9]"));
  EXPECT_THAT(error(map.to(at::kHalf), rois),
              HasSubstr("argument 'features' should be float32 or bfloat16 or float64, got float16"));
  EXPECT_THAT(error(map, rois, 0),
              HasSubstr("the pooled size should be 1 to 1024 along each axis, got [0, 2]"));
  EXPECT_THAT(error(map, rois, 2, at::tensor({8, 9, 8, 10}, at::kLong).view({2, 2})),
              HasSubstr("argument 'valid' at [1, 1] should lie in 0..9, got 10"));
  EXPECT_THAT(ErrorOf([&] { roi_align(map, rois, -1, 2, 2); }),
              HasSubstr("the scale argument should be positive, got -1"));
  EXPECT_THAT(ErrorOf([&] { roi_align_pyramid({{map, map}, {0.5, 0.125}}, rois, 2, 2); }),
              HasSubstr("argument 'spatial_scales' should halve from each level to the next"));
  EXPECT_THAT(ErrorOf([&] { roi_align_pyramid({{map}, {0.5, 0.25}}, rois, 2, 2); }),
              HasSubstr("argument 'spatial_scales' should have one scale for each of 1 levels, got 2"));
  EXPECT_THAT(ErrorOf([&] { roi_align_pyramid({}, rois, 2, 2); }), HasSubstr("should be 1 to 8 maps, got 0"));
  EXPECT_THAT(ErrorOf([&] { roi_align_3d(map, rois, 1, 2, 2, 2); }),
              HasSubstr("roi_align_3d: argument 'features' should have 5 dimensions, got [2, 3, 8, 9]"));
}

}  // namespace
}  // namespace saccade::kernels
