#include "server/encode/label_map.h"

#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

namespace saccade::server {
namespace {

// A 3 x 5 map that contains the smallest and the largest label.
const models::Segmentation kMap = {
    .height = 3, .width = 5, .labels = {0, 1, 2, 3, 4, 255, 254, 0, 0, 0, 7, 7, 7, 8, 9}, .areas = {}};

TEST(LabelMapTest, PngGivesTheLabelsBack) {
  const auto png = LabelMapPng(kMap);
  ASSERT_TRUE(png.ok()) << png.status();
  const cv::Mat decoded = cv::imdecode(std::vector<uint8_t>(png->begin(), png->end()), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(decoded.type(), CV_8UC1);
  ASSERT_EQ(decoded.size(), cv::Size(5, 3));
  EXPECT_EQ(std::vector<uint8_t>(decoded.begin<uint8_t>(), decoded.end<uint8_t>()), kMap.labels);
}

TEST(LabelMapTest, BytesAreTheLabels) {
  const auto bytes = LabelMapBytes(kMap);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(std::vector<uint8_t>(bytes->begin(), bytes->end()), kMap.labels);
}

TEST(LabelMapTest, LabelsThatDoNotFillTheSizeAreRefused) {
  models::Segmentation map = kMap;
  map.width = 6;
  EXPECT_EQ(LabelMapPng(map).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(LabelMapBytes(map).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(LabelMapPng({}).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace saccade::server
