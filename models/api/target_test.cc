// Tests the GPU's code path on the CPU: ATen's operators instead of packed ones, and passes replayed from a
// recording.
#include "models/api/target.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/api/error.h"
#include "models/api/model.h"
#include "models/api/registry.h"
#include "models/networks/deeplab/deeplab.h"
#include "models/networks/deeplab/table.h"
#include "models/networks/mask_rcnn/mask_rcnn.h"
#include "models/networks/mask_rcnn/testing/networks.h"
#include "models/networks/mobile/mobile.h"
#include "models/networks/mobile/parameters.h"
#include "models/networks/psmnet/psmnet.h"
#include "models/networks/psmnet/table.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// kTf32 selects ATen's operators in float32.
constexpr Target kPlain{.precision = Precision::kTf32, .replay_on_cpu = true};
constexpr Target kBFloat16{.precision = Precision::kBFloat16, .replay_on_cpu = true};

// A batch of smooth pictures (or pairs) of these sizes, in one bucket.
Batch Pictures(const std::vector<Size>& sizes, Size bucket, int64_t channels = 3) {
  Batch batch{at::zeros({static_cast<int64_t>(sizes.size()), channels, bucket.height, bucket.width}), {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [height, width] = sizes[i];
    const at::Tensor coarse = at::randn({1, channels, height / 16 + 2, width / 16 + 2});
    batch.pixels[static_cast<int64_t>(i)]
        .narrow(1, 0, height)
        .narrow(2, 0, width)
        .copy_(at::upsample_bilinear2d(coarse, {height, width}, /*align_corners=*/false)[0]);
    batch.placements.push_back({sizes[i], sizes[i], bucket});
  }
  return batch;
}

class TargetTest : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(5); }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_ = ::testing::TempDir() + "/target_test." + std::to_string(getpid());
};

TEST_F(TargetTest, Sanet) {
  const Options options = {{"width", "0.25"}, {"classes", "10"}, {"input_size", "64"}};
  testing::SaveSafetensors(
      testing::RandomTensors(MobileParameters(MakeMobilePlan(ParseMobileOptions("sanet", options)))), path_);
  const auto packed = LoadMobile("sanet", options, path_, {});
  const auto plain = LoadMobile("sanet", options, path_, {}, kPlain);
  const auto coarse = LoadMobile("sanet", options, path_, {}, kBFloat16);
  for (int round = 0; round < 2; ++round) {
    const Batch batch = Pictures({{64, 64}, {64, 64}}, {64, 64});
    const auto logits = [&](const Model& model) {
      return std::get<Classification>(model.Run(batch).at(1)).logits;
    };
    const std::vector<float> expected = logits(*packed);
    const auto [min, max] = std::minmax_element(expected.begin(), expected.end());
    EXPECT_THAT(logits(*plain), ::testing::Pointwise(::testing::FloatNear(1e-4F), expected));
    EXPECT_THAT(logits(*coarse), ::testing::Pointwise(::testing::FloatNear(0.1F * (*max - *min)), expected));
  }
}

double Agreement(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int64_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(same) / static_cast<double>(a.size());
}

TEST_F(TargetTest, DeepLab) {
  for (const auto& [architecture, head, exact] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"deeplabv2_kao_kv", "kao", "false"},
           {"deeplabv2_kao_kv", "kao", "true"},
           {"deeplabv2_kao_qkv", "kao", "true"},
           {"deeplabv2_kao_kv", "attention_pool", "true"},
           {"deeplabv2_kao_kv", "aspp", "true"}}) {
    const Options options = {{"head", head},        {"exact", exact},        {"width", "0.25"},
                             {"blocks", "1,2,2,1"}, {"head_channels", "64"}, {"classes", "7"}};
    Ledger ledger;
    RecordDeepLab(ParseDeepLabOptions(architecture, options), {321, 321}, ledger);
    TensorMap tensors = testing::RandomTensors(ledger.tensors());
    for (auto& [name, tensor] : tensors) {
      if (name.ends_with("bn3.weight")) tensor.mul_(0.3);
      if (name.ends_with("coefficients.weight")) tensor.fill_(0.05);
    }
    testing::SaveSafetensors(tensors, path_);
    const auto packed = LoadDeepLab(architecture, options, path_, {});
    const auto plain = LoadDeepLab(architecture, options, path_, {}, kPlain);
    const auto coarse = LoadDeepLab(architecture, options, path_, {}, kBFloat16);
    // The second round replays the recordings with other extents.
    for (const std::vector<Size>& sizes :
         {std::vector<Size>{{96, 128}, {70, 89}}, std::vector<Size>{{50, 100}, {96, 41}}}) {
      const Batch batch = Pictures(sizes, {96, 128});
      const auto expected = packed->Run(batch);
      const auto same = plain->Run(batch);
      const auto close = coarse->Run(batch);
      for (size_t i = 0; i < sizes.size(); ++i) {
        const auto& labels = std::get<Segmentation>(expected[i]).labels;
        EXPECT_GT(Agreement(std::get<Segmentation>(same[i]).labels, labels), 0.999) << head << exact;
        EXPECT_GT(Agreement(std::get<Segmentation>(close[i]).labels, labels), 0.8) << head << exact;
      }
    }
  }
}

TEST_F(TargetTest, Psmnet) {
  for (const char* exact : {"false", "true"}) {
    const Options options = {{"width", "0.5"}, {"max_disparity", "48"}, {"exact", exact}};
    TensorMap tensors =
        testing::RandomTensors(RecordPsmnet(ParsePsmnetOptions("ea_psmnet", options)).tensors());
    for (auto& [name, tensor] : tensors) {
      if (tensor.dim() == 1 && name.ends_with(".weight")) tensor.abs_().add_(0.4);
    }
    testing::SaveSafetensors(tensors, path_);
    const auto packed = LoadPsmnet("ea_psmnet", options, path_, {});
    const auto plain = LoadPsmnet("ea_psmnet", options, path_, {}, kPlain);
    const auto coarse = LoadPsmnet("ea_psmnet", options, path_, {}, kBFloat16);
    const auto values = [](const Model& model, const Batch& batch) {
      return std::get<Disparity>(model.Run(batch).at(0)).values;
    };
    for (const Size size : {Size{64, 128}, Size{49, 100}}) {
      const Batch batch = Pictures({size}, {64, 128}, 6);
      const std::vector<float> expected = values(*packed, batch);
      EXPECT_THAT(values(*plain, batch), ::testing::Pointwise(::testing::FloatNear(2e-3F), expected))
          << exact;
      double off = 0;
      const std::vector<float> got = values(*coarse, batch);
      for (size_t i = 0; i < got.size(); ++i) off += std::abs(got[i] - expected[i]);
      EXPECT_LT(off / static_cast<double>(got.size()), 1.5) << exact;
    }
    // With `exact` a size is recorded when it comes for the third time: these have the last one's, 64 x 112.
    for (const Size size : {Size{50, 99}, Size{51, 98}}) {
      const Batch batch = Pictures({size}, {64, 128}, 6);
      EXPECT_THAT(values(*plain, batch),
                  ::testing::Pointwise(::testing::FloatNear(2e-3F), values(*packed, batch)))
          << exact;
    }
  }
}

TEST_F(TargetTest, MaskRcnn) {
  for (const char* fpn : {"paper", "torchvision"}) {
    for (const char* exact : {"false", "true"}) {
      const Options options = testing::NarrowMaskRcnn({{"fpn", fpn}, {"exact", exact}});
      testing::SaveSafetensors(testing::MaskRcnnTensors("ea_mask_rcnn_r50", options), path_);
      const auto packed = LoadMaskRcnn("ea_mask_rcnn_r50", options, path_, {});
      const auto plain = LoadMaskRcnn("ea_mask_rcnn_r50", options, path_, {}, kPlain);
      const auto coarse = LoadMaskRcnn("ea_mask_rcnn_r50", options, path_, {}, kBFloat16);
      for (const std::vector<Size>& sizes :
           {std::vector<Size>{{100, 150}, {128, 90}}, std::vector<Size>{{60, 160}, {128, 160}}}) {
        const Batch batch = Pictures(sizes, {128, 160});
        const auto expected = packed->Run(batch);
        const auto same = plain->Run(batch);
        const auto close = coarse->Run(batch);
        for (size_t i = 0; i < sizes.size(); ++i) {
          const auto& boxes = std::get<Detections>(expected[i]).items;
          const auto& got = std::get<Detections>(same[i]).items;
          ASSERT_EQ(got.size(), boxes.size()) << fpn << exact;
          ASSERT_FALSE(boxes.empty());
          for (size_t k = 0; k < boxes.size(); ++k) {
            EXPECT_NEAR(got[k].score, boxes[k].score, 1e-4);
            EXPECT_NEAR(got[k].x_min, boxes[k].x_min, 1e-2);
            EXPECT_NEAR(got[k].y_max, boxes[k].y_max, 1e-2);
            EXPECT_THAT(got[k].mask, ::testing::Pointwise(::testing::FloatNear(1e-3F), boxes[k].mask));
          }
          // bfloat16's rounding selects other boxes; the score of the best one stays close.
          const auto& found = std::get<Detections>(close[i]).items;
          ASSERT_FALSE(found.empty());
          EXPECT_NEAR(found[0].score, boxes[0].score, 0.1);
        }
      }
    }
  }
}

std::string Error(const Options& options, std::optional<int> gpu) {
  try {
    Load("sanet", options, "/nonexistent", {}, gpu);
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(PrecisionTest, UnknownValuesAreRefused) {
  EXPECT_THAT(Error({{"precision", "int4"}}, std::nullopt),
              AllOf(HasSubstr("int4"), HasSubstr("auto, fp32, tf32, bf16, fp16 or int8")));
  EXPECT_THAT(Error({{"precision", "fp32"}}, std::nullopt), HasSubstr("/nonexistent"));
  EXPECT_THAT(Error({{"precision", "auto"}}, std::nullopt), HasSubstr("/nonexistent"));
  // The second where a GPU is.
  EXPECT_THAT(Error({}, 1000), AnyOf(HasSubstr("needs GPU 1000, which cannot be used: "),
                                     HasSubstr("needs GPU 1000, but there are ")));
}

TEST(PrecisionTest, LongNamesAreAcceptedAndShortOnesShown) {
  for (const auto& [name, shown] :
       {std::pair("float32", "fp32"), std::pair("bfloat16", "bf16"), std::pair("float16", "fp16")}) {
    EXPECT_STREQ(PrecisionName(PrecisionOf({{"precision", name}})), shown);
  }
}

TEST(PrecisionTest, OnlyAGpuHasTf32AndFp16) {
  EXPECT_THAT(Error({{"precision", "tf32"}}, std::nullopt), AllOf(HasSubstr("tf32"), HasSubstr("KIND_GPU")));
  EXPECT_THAT(Error({{"precision", "fp16"}}, std::nullopt), AllOf(HasSubstr("fp16"), HasSubstr("KIND_GPU")));
}

TEST(PrecisionTest, BFloat16NeedsAProcessorThatMultipliesIt) {
  EXPECT_NO_THROW(CheckCpuPrecision(Precision::kFloat32, /*native=*/false));
  EXPECT_NO_THROW(CheckCpuPrecision(Precision::kBFloat16, /*native=*/true));
  try {
    CheckCpuPrecision(Precision::kBFloat16, /*native=*/false);
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("avx512_bf16"), HasSubstr("fp32"), HasSubstr("auto")));
  }
}

TEST(PrecisionTest, Int8NeedsAProcessorThatMultipliesBytes) {
  EXPECT_NO_THROW(CheckCpuPrecision(Precision::kInt8, /*native=*/true));
  try {
    CheckCpuPrecision(Precision::kInt8, /*native=*/false);
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("vnni"), HasSubstr("fp32"), HasSubstr("auto")));
  }
}

TEST(PrecisionTest, OnlyTheCpuHasInt8) {
  EXPECT_THAT(Error({{"precision", "int8"}}, 0), AllOf(HasSubstr("int8"), HasSubstr("only the CPU")));
}

}  // namespace
}  // namespace saccade::models
