#include "client/cli/output/tiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/output/output_file.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  VolumeShape shape;
  int opencv_type = 0;
};

class Tiff : public ::testing::TestWithParam<Case> {};

// Values that use both bytes of uint16 elements and all four of floats.
std::string Voxels(const VolumeShape& shape) {
  std::string voxels(static_cast<size_t>(shape.Bytes()), '\0');
  const size_t count = voxels.size() / static_cast<size_t>(shape.VoxelBytes());
  for (size_t i = 0; i < count; ++i) {
    if (shape.type == VoxelType::kFloat32) {
      const float value = -1.25f + static_cast<float>(i) / 3;
      std::memcpy(voxels.data() + i * sizeof(value), &value, sizeof(value));
    } else if (shape.type == VoxelType::kUint16) {
      const auto value = static_cast<uint16_t>(60000 - 257 * i);
      std::memcpy(voxels.data() + i * sizeof(value), &value, sizeof(value));
    } else {
      voxels[i] = static_cast<char>(200 - 7 * i);
    }
  }
  return voxels;
}

TEST_P(Tiff, IsReadByOpenCvPageByPage) {
  const VolumeShape& shape = GetParam().shape;
  const std::string voxels = Voxels(shape);
  const auto head = TiffHead(shape, -1.25f, 8);
  ASSERT_TRUE(head.ok()) << head.status();
  std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '-');
  const std::string path = std::filesystem::path(::testing::TempDir()) / ("saccade-" + name + ".tif");
  ASSERT_TRUE(WriteFile(path, {*head, voxels}).ok());

  std::vector<cv::Mat> pages;
  ASSERT_TRUE(cv::imreadmulti(path, pages, cv::IMREAD_UNCHANGED));
  std::filesystem::remove(path);
  ASSERT_EQ(pages.size(), static_cast<size_t>(shape.depth));
  std::string read;
  for (const cv::Mat& page : pages) {
    ASSERT_EQ(page.type(), GetParam().opencv_type);
    ASSERT_EQ(page.size(), cv::Size(shape.width, shape.height));
    ASSERT_TRUE(page.isContinuous());
    read.append(reinterpret_cast<const char*>(page.data), page.total() * page.elemSize());
  }
  EXPECT_TRUE(read == voxels);
}

INSTANTIATE_TEST_SUITE_P(All, Tiff,
                         ::testing::Values(Case{{1, 1, 1, VoxelType::kUint8}, CV_8UC1},
                                           Case{{3, 5, 7, VoxelType::kUint8}, CV_8UC1},
                                           Case{{2, 64, 33, VoxelType::kUint8}, CV_8UC1},
                                           Case{{1, 1, 1, VoxelType::kUint16}, CV_16UC1},
                                           Case{{4, 3, 5, VoxelType::kUint16}, CV_16UC1},
                                           Case{{7, 9, 1, VoxelType::kUint16}, CV_16UC1},
                                           Case{{1, 1, 1, VoxelType::kFloat32}, CV_32FC1},
                                           Case{{5, 7, 3, VoxelType::kFloat32}, CV_32FC1},
                                           Case{{300, 2, 3, VoxelType::kFloat32}, CV_32FC1}));

TEST(TiffHead, DescribesAStackAndItsRange) {
  const auto head = TiffHead({24, 3, 5, VoxelType::kFloat32}, -0.5f, 2.25f);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->substr(0, 4), std::string("II*\0", 4));
  EXPECT_THAT(*head, HasSubstr("ImageJ="));
  EXPECT_THAT(*head, HasSubstr("\nimages=24\nslices=24\nmin=-0.5\nmax=2.25\n"));
  EXPECT_THAT(*TiffHead({1, 3, 5, VoxelType::kUint8}, 4, 4), Not(HasSubstr("min="))) << "there is no range";
}

TEST(TiffHead, RejectsVolumesBeyond32BitOffsets) {
  EXPECT_TRUE(TiffHead({1, 65535, 65535, VoxelType::kUint8}, 0, 1).ok());
  for (const VolumeShape shape :
       {VolumeShape{1, 65536, 65536, VoxelType::kUint8}, VolumeShape{65536, 256, 64, VoxelType::kFloat32}}) {
    const auto head = TiffHead(shape, 0, 1);
    EXPECT_EQ(head.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(head.status().message()), HasSubstr("is limited to 4 GiB; --raw writes"));
  }
}

}  // namespace
}  // namespace saccade::client
