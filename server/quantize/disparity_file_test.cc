#include "server/quantize/disparity_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "server/pictures/png.h"
#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr double kAny = std::numeric_limits<double>::infinity();

// The bytes of a float map with these values, the lowest row first.
std::string Pfm(const std::string& head, const std::vector<float>& values, bool is_little_endian) {
  std::string file = head;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    file += is_little_endian ? Little(bits, 4) : Big(bits, 4);
  }
  return file;
}

class DisparityFileTest : public LabelFolderTest {
 protected:
  std::string ErrorOf(absl::string_view name, const std::string& content) const {
    return std::string(ReadDisparityFile(Write(name, content), 2, 3, kAny).status().message());
  }
};

TEST_F(DisparityFileTest, APfmBeginsWithTheLowestRow) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {4, 5, 6, 1, infinite, 3.5F};
  for (const bool is_little_endian : {false, true}) {
    const std::string head = is_little_endian ? "Pf\n3 2\n-1.0\n" : "Pf\n3 2\n1\n";
    const auto read = ReadDisparityFile(Write("d.pfm", Pfm(head, values, is_little_endian)), 2, 3, kAny);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(*read, ElementsAre(1, IsNan(), 3.5F, 4, 5, 6));
  }
  const auto near = ReadDisparityFile(Write("d.pfm", Pfm("Pf  3 2 -1 \r\n", values, true)), 2, 3, 5);
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_THAT(*near, ElementsAre(1, IsNan(), 3.5F, 4, IsNan(), IsNan())) << "those below 5 count";
}

TEST_F(DisparityFileTest, APngHas256TimesTheDisparity) {
  const uint16_t steps[] = {0, 256, 384, 65535, 1, 512};
  const auto read = ReadDisparityFile(Write("d.png", *GreyPng(steps, 2, 3)), 2, 3, kAny);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(IsNan(), 1, 1.5F, 65535 / 256.0F, 1 / 256.0F, 2));
}

TEST_F(DisparityFileTest, WhatDoesNotFitIsTold) {
  const uint8_t pixels[] = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(ErrorOf("d.png", *GreyPng(pixels, 2, 3)),
              HasSubstr("d.png: has 8 bits for each pixel; expected 16, with 256 times the disparity"));
  EXPECT_THAT(ErrorOf("d.png", *GreyPng(pixels, 3, 2)), HasSubstr("d.png: has 2 x 3 pixels"));
  const std::vector<float> values(6, 1.0F);
  EXPECT_THAT(ErrorOf("d.pfm", Pfm("Pf\n2 3\n-1\n", values, true)), HasSubstr("d.pfm: has 2 x 3 pixels"));
  EXPECT_THAT(ErrorOf("d.pfm", Pfm("Pf\n3 2\n-1\n", {1, 2}, true)),
              HasSubstr("d.pfm: has 8 bytes behind its header; expected 24"));
  for (const std::string head : {"", "Pf", "PF\n3 2\n-1\n", "Pf\n3 2\n0\n", "Pf\n-3 2\n-1\n",
                                 "Pf\n99999999999999999999 2\n-1\n", "Pf\n3 2\n-1 x\n", "Pf\n3 2\nnan\n"})
    EXPECT_THAT(ErrorOf("d.pfm", Pfm(head, values, true)), HasSubstr("expected one with one channel (Pf)"))
        << head;
}

}  // namespace
}  // namespace saccade::server
