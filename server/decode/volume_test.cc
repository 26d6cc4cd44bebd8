#include "server/decode/volume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tiffio.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Layout {
  bool tiled = false;
  int compression = COMPRESSION_NONE;
  const char* mode = "w";
  // The first page has this description; null if it has none.
  const char* description = nullptr;
};

template <typename T>
constexpr uint16_t kFormat = std::is_floating_point_v<T> ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT;

std::string TemporaryPath() {
  return testing::TempDir() + "volume_test_" + std::to_string(getpid()) + ".tif";
}

void SetPage(TIFF* tiff, int width, int height, int bits, int format) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, format);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  return bytes;
}

template <typename T>
void WriteTile(TIFF* tiff, const T* page, int width, int height, int x, int y) {
  constexpr int kTile = 16;
  std::vector<T> tile(kTile * kTile);
  for (int row = 0; row < kTile && y + row < height; ++row) {
    for (int column = 0; column < kTile && x + column < width; ++column)
      tile[row * kTile + column] = page[(y + row) * width + x + column];
  }
  TIFFWriteTile(tiff, tile.data(), x, y, 0, 0);
}

// Writes as many pages as the values fill.
template <typename T>
std::string Tiff(const std::vector<T>& values, int width, int height, const Layout& layout = {}) {
  const std::string path = TemporaryPath();
  TIFF* const tiff = TIFFOpen(path.c_str(), layout.mode);
  for (size_t page = 0; page < values.size() / (width * height); ++page) {
    SetPage(tiff, width, height, 8 * sizeof(T), kFormat<T>);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, layout.compression);
    if (page == 0 && layout.description != nullptr)
      TIFFSetField(tiff, TIFFTAG_IMAGEDESCRIPTION, layout.description);
    std::vector<T> rows(values.begin() + page * width * height, values.begin() + (page + 1) * width * height);
    if (layout.tiled) {
      TIFFSetField(tiff, TIFFTAG_TILEWIDTH, 16);
      TIFFSetField(tiff, TIFFTAG_TILELENGTH, 16);
      for (int y = 0; y < height; y += 16) {
        for (int x = 0; x < width; x += 16) WriteTile(tiff, rows.data(), width, height, x, y);
      }
    } else {
      TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 3);
      for (int row = 0; row < height; ++row) TIFFWriteScanline(tiff, rows.data() + row * width, row, 0);
    }
    TIFFWriteDirectory(tiff);
  }
  TIFFClose(tiff);
  return Contents(path);
}

Picture File(const std::string& bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  const std::string_view view = *owner;
  return EncodedPicture{.data = {.owner = std::move(owner), .bytes = view}};
}

template <typename T>
std::vector<T> Values(int count) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<T>(i * 37 % 251);
  return values;
}

template <typename T>
void ExpectRead(const std::string& bytes, const std::vector<T>& values, int width, int height,
                VoxelType type) {
  const auto header = ReadVolumeHeader(File(bytes), 1 << 20);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->width, width);
  EXPECT_EQ(header->height, height);
  EXPECT_EQ(header->voxels(), static_cast<int64_t>(values.size()));
  EXPECT_EQ(header->type, type);
  std::vector<float> out(values.size());
  const absl::Status written = WriteVolume(File(bytes), *header, absl::MakeSpan(out));
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(out, std::vector<float>(values.begin(), values.end()));
}

std::string Refusal(const std::string& bytes, int64_t max = 1 << 20) {
  const auto header = ReadVolumeHeader(File(bytes), max);
  if (!header.ok()) {
    EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(header.status().message());
  }
  std::vector<float> out(header->voxels());
  const absl::Status written = WriteVolume(File(bytes), *header, absl::MakeSpan(out));
  EXPECT_EQ(written.code(), absl::StatusCode::kInvalidArgument);
  return std::string(written.message());
}

TEST(VolumeTest, ReadsEveryTypeInStripsAndTiles) {
  for (const bool tiled : {false, true}) {
    for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
      const Layout layout{.tiled = tiled, .compression = compression};
      ExpectRead(Tiff(Values<uint8_t>(3 * 19 * 23), 19, 23, layout), Values<uint8_t>(3 * 19 * 23), 19, 23,
                 VoxelType::kUint8);
      ExpectRead(Tiff(Values<uint16_t>(2 * 40 * 7), 40, 7, layout), Values<uint16_t>(2 * 40 * 7), 40, 7,
                 VoxelType::kUint16);
      ExpectRead(Tiff(Values<float>(2 * 5 * 33), 5, 33, layout), Values<float>(2 * 5 * 33), 5, 33,
                 VoxelType::kFloat32);
    }
  }
}

TEST(VolumeTest, ReadsTheOtherByteOrderAndBigTiff) {
  const auto values = Values<uint16_t>(2 * 6 * 5);
  ExpectRead(Tiff(values, 6, 5, {.mode = "wb"}), values, 6, 5, VoxelType::kUint16);
  ExpectRead(Tiff(values, 6, 5, {.mode = "w8"}), values, 6, 5, VoxelType::kUint16);
}

TEST(VolumeTest, RefusesWhatIsNoVolume) {
  EXPECT_THAT(Refusal("not a TIFF at all"), HasSubstr("not a readable TIFF"));
  EXPECT_THAT(Refusal(""), HasSubstr("0 bytes"));
  EXPECT_THAT(Refusal(Tiff(Values<double>(12), 3, 4)),
              AllOf(HasSubstr("floating point of 64 bits"), HasSubstr("float32")));
  cv::Mat colours(4, 5, CV_8UC3, cv::Scalar(1, 2, 3));
  EXPECT_THAT(Refusal(Encode(".tiff", colours)), HasSubstr("not greyscale"));
}

TEST(VolumeTest, PagesHaveOneSize) {
  const std::string path = TemporaryPath();
  TIFF* const tiff = TIFFOpen(path.c_str(), "w");
  const std::vector<uint8_t> row(8);
  for (const int height : {2, 3}) {
    SetPage(tiff, 8, height, 8, SAMPLEFORMAT_UINT);
    for (int y = 0; y < height; ++y) TIFFWriteScanline(tiff, const_cast<uint8_t*>(row.data()), y, 0);
    TIFFWriteDirectory(tiff);
  }
  TIFFClose(tiff);
  EXPECT_THAT(Refusal(Contents(path)), AllOf(HasSubstr("page 1 of the TIFF is 8 x 3"), HasSubstr("8 x 2")));
}

TEST(VolumeTest, ImagesThatADescriptionNamesHavePages) {
  const auto with = [](int pages, const char* description) {
    return Tiff(Values<uint8_t>(pages * 4 * 3), 4, 3, {.description = description});
  };
  constexpr char kThree[] = "ImageJ=1.53t\nimages=3\nslices=3\nloop=false\n";
  EXPECT_EQ(Refusal(with(1, kThree)),
            "the description names 3 images, the file has 1 page; save it as a TIFF with a page for each");
  EXPECT_THAT(Refusal(with(2, kThree)), HasSubstr("the file has 2 pages"));
  ExpectRead(with(3, kThree), Values<uint8_t>(3 * 4 * 3), 4, 3, VoxelType::kUint8);
  for (const char* fine :
       {"ImageJ=1.53t\nmin=0.0\n", "ImageJ=1.53t\nimages=many\n", "ImageJ=1.53t\nsubimages=3",
        "a program\nimages=3", "ImageJ=1.53t\nimages=99999999999999999999\n", "images=3", ""}) {
    ExpectRead(with(1, fine), Values<uint8_t>(4 * 3), 4, 3, VoxelType::kUint8);
  }
}

TEST(VolumeTest, BoundsAreToldBeforeAnythingIsDecoded) {
  const std::string bytes = Tiff(Values<uint8_t>(5 * 4 * 3), 4, 3);
  EXPECT_THAT(Refusal(bytes, 47), AllOf(HasSubstr("4 x 3 x 4"), HasSubstr("at most 47")));
  VolumeHeader huge{.depth = 65535, .height = 65535, .width = 65535};
  EXPECT_FALSE(CheckVoxels(huge, int64_t{1} << 40).ok());
  huge.depth = 65536;
  EXPECT_THAT(std::string(CheckVoxels(huge, int64_t{1} << 62).message()),
              HasSubstr("each dimension may be at most"));
}

TEST(VolumeTest, DamagedFilesAreToldSoOrRead) {
  std::mt19937 random(5);
  const std::string bytes =
      Tiff(Values<uint16_t>(3 * 20 * 20), 20, 20, {.tiled = true, .compression = COMPRESSION_ADOBE_DEFLATE});
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    const Picture file = File(Mutate(bytes, random));
    const auto header = ReadVolumeHeader(file, 1 << 20);
    if (!header.ok()) {
      ++refused;
      continue;
    }
    std::vector<float> out(header->voxels());
    refused += WriteVolume(file, *header, absl::MakeSpan(out)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(VolumeTest, RawVoxelsMustFillTheirShape) {
  const std::string bytes(23, 'x');
  const RawVolume raw{.depth = 2,
                      .height = 3,
                      .width = 4,
                      .type = VoxelType::kUint8,
                      .data = {.owner = nullptr, .bytes = bytes}};
  EXPECT_THAT(std::string(ReadVolumeHeader(raw, 100).status().message()),
              AllOf(HasSubstr("holds 23 bytes"), HasSubstr("2 x 3 x 4"), HasSubstr("24")));
  EXPECT_FALSE(ReadVolumeHeader(RawPicture{}, 100).ok());
  RawVolume empty = raw;
  empty.depth = 0;
  EXPECT_FALSE(ReadVolumeHeader(empty, 100).ok());
}

}  // namespace
}  // namespace saccade::server
