#include "server/encode/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::vector<T> Voxels(const models::Restoration& result, VoxelType type) {
  const auto bytes = VoxelBytes(result, type);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::vector<T> values(bytes->size() / sizeof(T));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

const models::Restoration kResult = {
    .depth = 1, .height = 2, .width = 3, .values = {-3, 0.4F, 0.6F, 254.6F, 70000, 1e30F}};

TEST(VoxelBytes, RoundsAndClipsToTheType) {
  EXPECT_THAT(Voxels<uint8_t>(kResult, VoxelType::kUint8), ElementsAre(0, 0, 1, 255, 255, 255));
  EXPECT_THAT(Voxels<uint16_t>(kResult, VoxelType::kUint16), ElementsAre(0, 0, 1, 255, 65535, 65535));
  EXPECT_EQ(Voxels<float>(kResult, VoxelType::kFloat32), kResult.values);
}

TEST(VoxelBytes, WhatIsNotANumberBecomesZero) {
  const models::Restoration result = {
      .depth = 1, .height = 1, .width = 2, .values = {std::numeric_limits<float>::quiet_NaN(), 7}};
  EXPECT_THAT(Voxels<uint8_t>(result, VoxelType::kUint8), ElementsAre(0, 7));
  EXPECT_THAT(Voxels<uint16_t>(result, VoxelType::kUint16), ElementsAre(0, 7));
}

TEST(VoxelBytes, RefusesWhatDoesNotFillItsSize) {
  models::Restoration result = kResult;
  result.values.pop_back();
  const auto bytes = VoxelBytes(result, VoxelType::kFloat32);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("1 x 2 x 3"));
}

}  // namespace
}  // namespace saccade::server
