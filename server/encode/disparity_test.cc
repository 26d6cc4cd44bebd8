#include "server/encode/disparity.h"

#include <gtest/gtest.h>

#include <cstring>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

namespace saccade::server {
namespace {

const models::Disparity kMap = {
    .height = 2, .width = 4, .values = {0, 0.001F, 1, 1.5F, 191.875F, 100.0F + 0.6F / 256, 255.999F, 1e6F}};

TEST(DisparityTest, PngHoldsValueTimes256) {
  const auto png = DisparityPng(kMap);
  ASSERT_TRUE(png.ok()) << png.status();
  const cv::Mat decoded = cv::imdecode(std::vector<uint8_t>(png->begin(), png->end()), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(decoded.type(), CV_16UC1);
  ASSERT_EQ(decoded.size(), cv::Size(4, 2));
  // Only NaN may become 0, which means "no value".
  EXPECT_EQ(std::vector<uint16_t>(decoded.begin<uint16_t>(), decoded.end<uint16_t>()),
            (std::vector<uint16_t>{1, 1, 256, 384, 49120, 25601, 65535, 65535}));
}

TEST(DisparityTest, FloatsAreTheValues) {
  const auto bytes = DisparityFloats(kMap);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_EQ(bytes->size(), kMap.values.size() * 4);
  EXPECT_EQ(std::memcmp(bytes->data(), kMap.values.data(), bytes->size()), 0);
}

TEST(DisparityTest, ValuesThatDoNotFillTheSizeAreRefused) {
  models::Disparity map = kMap;
  map.values.pop_back();
  EXPECT_EQ(DisparityPng(map).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(DisparityFloats(map).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(DisparityPng({}).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace saccade::server
