#include "server/quantize/mask_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/pictures/png.h"
#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MaskFileTest : public LabelFolderTest {
 protected:
  std::string ErrorOf(const std::string& content) const {
    const auto mask = ReadMaskFile(Write("m.png", content), 2, 3, 21);
    return std::string(mask.status().message());
  }
};

TEST_F(MaskFileTest, HasTheClassOfEachPixel) {
  const uint8_t pixels[] = {0, 1, 20, 255, 4, 5};
  const auto mask = ReadMaskFile(Write("m.png", *GreyPng(pixels, 2, 3)), 2, 3, 21);
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_THAT(*mask, ElementsAre(0, 1, 20, 255, 4, 5));
  const uint16_t deep[] = {0, 1, 20, 255, 4, 5};
  EXPECT_EQ(ReadMaskFile(Write("m.png", *GreyPng(deep, 2, 3)), 2, 3, 21).value_or(std::vector<uint8_t>()),
            *mask);
}

TEST_F(MaskFileTest, WhatDoesNotFitIsTold) {
  const uint8_t pixels[] = {0, 1, 2, 3, 21, 5};
  EXPECT_THAT(
      ErrorOf(*GreyPng(pixels, 2, 3)),
      AllOf(HasSubstr("m.png: has the class 21 at column 1, row 1; the model has 21 classes; expected a "
                      "number from 0 to 20, or 255")));
  EXPECT_THAT(ErrorOf(*GreyPng(pixels, 3, 2)),
              HasSubstr("m.png: has 2 x 3 pixels, and its picture has 3 x 2; "
                        "expected labels of the picture's size"));
  const uint16_t deep[] = {0, 256, 0, 0, 0, 0};
  EXPECT_THAT(ErrorOf(*GreyPng(deep, 2, 3)), HasSubstr("has the class 256"));
  EXPECT_THAT(ErrorOf(Encode(".png", SmoothPicture(3, 2))), HasSubstr("expected a PNG with one channel"));
  EXPECT_THAT(ErrorOf("text"), HasSubstr("m.png: "));
  const std::string whole = *GreyPng(pixels, 2, 3);
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 20)), HasSubstr("m.png: "));
}

}  // namespace
}  // namespace saccade::server
