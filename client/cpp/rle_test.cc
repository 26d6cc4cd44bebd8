#include "client/cpp/rle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "client/cpp/testing/encode_mask.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;

RleMask Mask(int height, int width, std::string counts) { return {height, width, std::move(counts), 0}; }

char Digit(int bits, bool more) { return static_cast<char>('0' + bits + (more ? 0x20 : 0)); }

// Returns the pixels of the whole picture, row by row.
std::vector<uint8_t> Whole(const MaskRegion& region, int height, int width) {
  std::vector<uint8_t> pixels(static_cast<size_t>(height) * width);
  for (int y = 0; y < region.height; ++y) {
    for (int x = 0; x < region.width; ++x) {
      pixels[(region.y + y) * width + region.x + x] = region.pixels[y * region.width + x];
    }
  }
  return pixels;
}

// Output of pycocotools.mask.encode for a 5x7 picture with rows 1 to 3 of columns 2 to 4 set.
TEST(DecodeMask, ReadsWhatPycocotoolsWrites) {
  const auto region = DecodeMask(Mask(5, 7, ";320009"));
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->x, 2);
  EXPECT_EQ(region->y, 1);
  EXPECT_EQ(region->width, 3);
  EXPECT_EQ(region->height, 3);
  EXPECT_EQ(region->pixels, std::vector<uint8_t>(9, 255));
}

TEST(DecodeMask, ReadsWhatWasEncoded) {
  std::mt19937 random(7);
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 40}, {40, 1}, {7, 5}, {64, 48}, {300, 200}}) {
    // Blobs rather than noise give both long runs, which need several digits, and short ones.
    std::vector<uint8_t> pixels(static_cast<size_t>(height) * width);
    for (int i = 0; i < 12; ++i) {
      const int x = static_cast<int>(random() % width), y = static_cast<int>(random() % height);
      for (int dy = y; dy < std::min(height, y + 30); ++dy) {
        for (int dx = x; dx < std::min(width, x + 9); ++dx) pixels[dy * width + dx] = 255 * (i % 3 != 0);
      }
    }
    const auto region = DecodeMask(EncodeMask(height, width, pixels));
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(Whole(*region, height, width), pixels) << width << "x" << height;
  }
}

TEST(DecodeMask, ReadsFullAndEmptyMasks) {
  const auto full = DecodeMask(Mask(3, 4, EncodeRuns({0, 12})));
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->pixels, std::vector<uint8_t>(12, 255));
  const auto empty = DecodeMask(Mask(3, 4, EncodeRuns({12})));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->pixels.empty());
}

struct Hostile {
  RleMask mask;
  std::string message;
};

class HostileMask : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileMask, IsRefusedWithWhatIsWrong) {
  const auto region = DecodeMask(GetParam().mask);
  EXPECT_EQ(region.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(region.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileMask,
    ::testing::Values(Hostile{Mask(3, 4, ""), "cover 0 pixels; the picture has 12"},
                      Hostile{Mask(3, 4, EncodeRuns({5, 6})), "cover 11 pixels"},
                      Hostile{Mask(3, 4, EncodeRuns({5, 8})), "run 1 is 8; expected 0 to 7"},
                      Hostile{Mask(3, 4, EncodeRuns({-1, 13})), "run 0 is -1"},
                      Hostile{Mask(3, 4, EncodeRuns({1, 1, 1, -1, 10})), "run 3 is -1"},
                      Hostile{Mask(3, 4, EncodeRuns({12}) + std::string(1, Digit(0, true))),
                              "middle of a number"},
                      Hostile{Mask(3, 4, std::string(7, Digit(1, true))), "more than 6 digits"},
                      Hostile{Mask(3, 4, "\n"), "byte 0 of the run lengths is not a valid COCO digit"},
                      Hostile{Mask(3, 4, "<\xff"), "byte 1 of the run lengths is not a valid COCO digit"},
                      Hostile{Mask(0, 4, ""), "its size is 4x0"},
                      Hostile{Mask(-3, -4, EncodeRuns({12})), "-4x-3"},
                      Hostile{Mask(1 << 30, 1 << 30, EncodeRuns({12})), "expected 1 to 268435456 pixels"}));

// Random bytes must yield a result or an error; the sanitizers detect the rest.
TEST(DecodeMask, SurvivesInvalidText) {
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(i % 2 == 0 ? '0' + random() % 64 : random());
    const auto region = DecodeMask(Mask(6, 9, text));
    if (!region.ok()) continue;
    EXPECT_LE(region->x + region->width, 9);
    EXPECT_LE(region->y + region->height, 6);
  }
}

}  // namespace
}  // namespace saccade::client
