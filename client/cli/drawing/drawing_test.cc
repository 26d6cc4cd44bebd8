#include "client/cli/drawing/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "client/cli/drawing/canvas.h"
#include "client/cli/drawing/disparity_map.h"
#include "client/cli/drawing/outline.h"
#include "client/cli/drawing/palette.h"
#include "client/cli/drawing/testing/pictures.h"
#include "client/cpp/testing/encode_mask.h"

namespace saccade::client {
namespace {

std::string TemporaryPng() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return std::filesystem::path(::testing::TempDir()) / (std::string(test->name()) + ".png");
}

TEST(VocColor, MatchesPascalVoc) {
  EXPECT_EQ(VocColor(0), cv::Vec3b(0, 0, 0));
  EXPECT_EQ(VocColor(1), cv::Vec3b(0, 0, 128));
  EXPECT_EQ(VocColor(8), cv::Vec3b(0, 0, 64));
  EXPECT_EQ(VocColor(15), cv::Vec3b(128, 128, 192));
  EXPECT_EQ(VocColor(20), cv::Vec3b(128, 64, 0));
  EXPECT_EQ(VocColor(255), cv::Vec3b(192, 224, 224));
}

TEST(BrightColor, DiffersBetweenNeighboursAndStaysInRange) {
  for (int64_t i = -3; i < 100; ++i) {
    const cv::Scalar one = BrightColor(i);
    EXPECT_GT(cv::norm(one - BrightColor(i + 1)), 60) << i;
    for (int channel = 0; channel < 3; ++channel) {
      EXPECT_GE(one[channel], 0);
      EXPECT_LE(one[channel], 255);
    }
  }
}

TEST(Outline, IsThatOfTheLargestPart) {
  std::vector<uint8_t> pixels(20 * 30);
  pixels[1 * 30 + 1] = 1;
  for (int y = 5; y < 15; ++y) {
    for (int x = 10; x < 22; ++x) pixels[y * 30 + x] = 1;
  }
  const std::vector<OutlinePoint> outline = OutlineOf(EncodeMask(20, 30, pixels));
  ASSERT_EQ(outline.size(), 4u);
  EXPECT_EQ(outline[0].x, 10);
  EXPECT_EQ(outline[0].y, 5);
  EXPECT_EQ(outline[2].x, 21);
  EXPECT_EQ(outline[2].y, 14);
  EXPECT_TRUE(OutlineOf({20, 30, "no mask", 0}).empty());
}

// The pixels of a text on a canvas of its own.
cv::Mat Written(const std::string& text) {
  cv::Mat canvas(60, 600, CV_8UC3, kPanel);
  Font(20).Write(canvas, text, {10, 40}, kLight);
  return canvas;
}

bool Differ(const std::string& a, const std::string& b) {
  return cv::norm(Written(a), Written(b), cv::NORM_INF) > 50;
}

TEST(Font, DrawsEveryScriptOfItsOwn) {
  const std::string texts[] = {
      "caf\u00e9",    "cafe", "\u00fc\u00df\u0131", "\u0416\u0443\u043a", "\u03b1\u03b2\u03b3",
      "\u0531\u0532", "caf?"};
  for (const std::string& a : texts) {
    for (const std::string& b : texts) EXPECT_EQ(Differ(a, b), a != b) << a << " and " << b;
  }
}

TEST(Font, CutsWholeCharacters) {
  const Font font(20);
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\u0416";
  for (const int width : {0, 40, 100, 101, 500}) {
    const std::string fitting = font.Fit(text, width);
    ASSERT_TRUE(fitting.ends_with("...")) << width;
    EXPECT_EQ((fitting.size() - 3) % 2, 0U) << "each character has two bytes";
    EXPECT_LE(font.WidthOf(fitting), std::max(width, 40));
  }
  EXPECT_EQ(font.Fit("\u0416\u0443\u043a", 1000), "\u0416\u0443\u043a");
}

TEST(Font, DrawsAMarkForWhatIsNoText) {
  for (const std::string text : {"\xff", "\xc3", "\xe4\xba", "\x01", "\x7f", "\xc2\x80"})
    EXPECT_FALSE(Differ(text, "\ufffd")) << text;
  EXPECT_TRUE(Differ("\ufffd", " "));
}

TEST(Font, WhatIsOutsideTheCanvasIsCut) {
  cv::Mat canvas(10, 10, CV_8UC3, kPanel);
  for (const cv::Point at : {cv::Point(-50, 5), cv::Point(5, -50), cv::Point(5, 500), cv::Point(-3, 8)})
    Font(20).Write(canvas, "W\u00c4gj", at, kLight);
}

// Of the thread's first text, because a thread reads the fonts once.
TEST(Font, AFontThatCannotBeReadIsAnError) {
  ASSERT_EQ(setenv("SACCADE_FONT", "/no/such/font.ttf", 1), 0);
  absl::Status status;
  std::thread([&status] { status = DrawTimeline({}, TemporaryPng()); }).join();
  ASSERT_EQ(unsetenv("SACCADE_FONT"), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("SACCADE_FONT is '/no/such/font.ttf'"));
}

TEST(DisparityPng, WritesZeroForMissingValues) {
  const auto bytes = DisparityPng(4, 1, {NAN, 0, 1.5f, 1000});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const cv::Mat png = cv::imdecode(std::vector<uint8_t>(bytes->begin(), bytes->end()), cv::IMREAD_UNCHANGED);
  ASSERT_EQ(png.type(), CV_16UC1);
  EXPECT_EQ(png.at<uint16_t>(0), 0);
  EXPECT_EQ(png.at<uint16_t>(1), 1);
  EXPECT_EQ(png.at<uint16_t>(2), 384);
  EXPECT_EQ(png.at<uint16_t>(3), 65535);
  Disparity answer;
  answer.width = 4;
  answer.height = 1;
  answer.map = *bytes;
  const auto values = ReadDisparity(answer);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(std::isnan((*values)[0]));
  EXPECT_EQ((*values)[2], 1.5f);
}

// A constant map has no range, and one without values has no minimum: both must be drawn.
TEST(DrawDisparity, TakesMapsWithoutARange) {
  Disparity answer;
  answer.width = 8;
  answer.height = 6;
  for (const float value : {3.0f, NAN}) {
    const std::string path = TemporaryPng();
    ASSERT_TRUE(DrawDisparity(answer, std::vector<float>(48, value), path).ok());
    const cv::Mat drawn = ReadPng(path);
    EXPECT_EQ(drawn.cols, 360);
    EXPECT_EQ(drawn.at<cv::Vec3b>(0, 0) == cv::Vec3b(0, 0, 0), std::isnan(value));
  }
}

TEST(DrawDepth, LabelsTheScaleOfConstantMaps) {
  DepthMap answer;
  answer.width = 8;
  answer.height = 6;
  for (const float value : {3.0f, 0.0f, 1e6f, -1e6f}) {
    const std::string path = TemporaryPng();
    ASSERT_TRUE(DrawDepth(answer, std::vector<float>(48, value), path).ok());
    const cv::Mat drawn = ReadPng(path);
    // Ticks and labels are below the bar, which is above the middle of the panel's 60 rows.
    const cv::Mat below = drawn(cv::Rect(0, drawn.rows - 30, drawn.cols, 30));
    EXPECT_GT(cv::norm(below, cv::NORM_INF), 150) << value;
  }
}

// Models choose the unit of depth, so that all values may lie within a small range.
TEST(DrawDepth, TellsSmallValuesApart) {
  DepthMap answer;
  answer.width = 2;
  answer.height = 1;
  std::vector<cv::Mat> drawn;
  for (const float unit : {1.0f, 1e-6f}) {
    const std::string path = TemporaryPng();
    ASSERT_TRUE(DrawDepth(answer, {unit, 2 * unit}, path).ok());
    drawn.push_back(ReadPng(path));
  }
  const cv::Rect left(0, 0, 2, 2), right(drawn[0].cols - 2, 0, 2, 2);
  EXPECT_GT(cv::norm(drawn[1](left), drawn[1](right), cv::NORM_L1), 100);
  EXPECT_EQ(cv::norm(drawn[0](left), drawn[1](left), cv::NORM_L1), 0);
  EXPECT_EQ(cv::norm(drawn[0](right), drawn[1](right), cv::NORM_L1), 0);
}

// Three touching objects of one class: each has its own colour in the middle, and a dark rim between them.
TEST(DrawDetections, TellsTouchingObjectsOfOneClassApart) {
  Detections answer;
  answer.picture_width = 600;
  answer.picture_height = 400;
  for (int i = 0; i < 3; ++i) {
    const auto left = static_cast<float>(100 + 120 * i);
    Detection item{{left, 100, left + 120, 300}, 0.9f, 7, "heart", {}, {}, {}, {}};
    std::vector<uint8_t> pixels(600 * 400);
    for (int y = 100; y < 300; ++y) {
      for (int x = 0; x < 120; ++x) pixels[y * 600 + 100 + 120 * i + x] = 1;
    }
    item.mask = EncodeMask(400, 600, pixels);
    answer.items.push_back(item);
  }
  const std::string path = TemporaryPng();
  ASSERT_TRUE(DrawDetections(Encoded(PlainPicture(600, 400)), answer, path).ok());
  const cv::Mat drawn = ReadPng(path);
  const auto at = [&drawn](int x) { return drawn.at<cv::Vec3b>(220, x); };
  EXPECT_GT(cv::norm(at(160), at(280), cv::NORM_L1), 40);
  EXPECT_GT(cv::norm(at(280), at(400), cv::NORM_L1), 40);
  EXPECT_GT(cv::norm(at(160), at(400), cv::NORM_L1), 40);
  int darkest = 255;
  for (int x = 210; x < 230; ++x) darkest = std::min<int>(darkest, cv::norm(at(x), cv::NORM_INF));
  EXPECT_LT(darkest, 80);
}

// A dot, a ring for a point that is rather not visible, and nothing for points outside of the picture.
TEST(DrawDetections, DrawsKeypoints) {
  Detections answer;
  answer.picture_width = 600;
  answer.picture_height = 400;
  Detection item{{100, 100, 500, 300}, 0.9f, 7, "heart", {}, {}, {}, {}};
  item.keypoints = {
      {300, 200, 0.9f}, {350, 200, 0.2f}, {-50, 200, 0.9f}, {300, 1e30f, 0.9f}, {NAN, 200, 0.9f}};
  answer.items = {item};
  const std::string path = TemporaryPng();
  ASSERT_TRUE(DrawDetections(Encoded(PlainPicture(600, 400)), answer, path).ok());
  const cv::Mat drawn = ReadPng(path);
  const cv::Vec3b plain(90, 120, 60);
  for (int channel = 0; channel < 3; ++channel)
    EXPECT_NEAR(drawn.at<cv::Vec3b>(200, 300)[channel], BrightColor(7)[channel], 1);
  EXPECT_EQ(drawn.at<cv::Vec3b>(200, 350), plain) << "in the ring";
  EXPECT_NE(drawn.at<cv::Vec3b>(200, 355), plain) << "on the ring";
  EXPECT_EQ(drawn.at<cv::Vec3b>(200, 325), plain) << "between the points";
  EXPECT_EQ(drawn.at<cv::Vec3b>(200, 0), plain) << "beside a point outside of the picture";
  EXPECT_EQ(drawn.at<cv::Vec3b>(399, 300), plain) << "above a point outside of the picture";
}

// The colour of a tag is found only in the tag and at its box, so tags that do not overlap can be counted.
TEST(DrawDetections, MovesTagsApart) {
  Detections answer;
  answer.picture_width = 800;
  answer.picture_height = 600;
  for (int i = 0; i < 12; ++i)
    answer.items.push_back({{300, 250, 420, 340}, 0.5f, i, "an object", {}, {}, {}, {}});
  const std::string path = TemporaryPng();
  ASSERT_TRUE(DrawDetections(Encoded(PlainPicture(800, 600)), answer, path).ok());
  const cv::Mat drawn = ReadPng(path);
  std::vector<int> areas;
  for (int i = 0; i < 12; ++i) {
    cv::Mat same;
    const cv::Scalar color = BrightColor(i);
    cv::inRange(drawn, color - cv::Scalar::all(2), color + cv::Scalar::all(2), same);
    areas.push_back(cv::countNonZero(same));
  }
  // A hidden tag would leave less than half of what a whole one shows.
  EXPECT_GT(*std::min_element(areas.begin(), areas.end()), *std::max_element(areas.begin(), areas.end()) / 2);
}

// A hundred detections all over a small picture, at its corners and beyond them.
TEST(DrawDetections, PlacesEveryTag) {
  Detections answer;
  answer.picture_width = 90;
  answer.picture_height = 70;
  for (int i = 0; i < 100; ++i) {
    const auto at = static_cast<float>(i);
    answer.items.push_back(
        {{at - 10, at - 20, at + 20, at + 5}, 0.5f, i, std::string(i, 'w'), {}, {}, {}, {}});
  }
  const std::string path = TemporaryPng();
  const absl::Status status = DrawDetections(Encoded(PlainPicture(90, 70)), answer, path);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadPng(path).size(), cv::Size(360, 280));
}

TEST(DrawSegmentation, CutsALongLegendShort) {
  Segmentation answer;
  answer.picture_width = answer.width = 64;
  answer.picture_height = answer.height = 48;
  answer.label_map = Encoded(cv::Mat(48, 64, CV_8UC1, cv::Scalar(7)));
  for (int i = 0; i < 256; ++i) answer.areas.push_back({i, "", 12, 1.0f / 256});
  const std::string path = TemporaryPng();
  const absl::Status status = DrawSegmentation(Encoded(PlainPicture(64, 48)), answer, path);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadPng(path).rows, 270 + 40 * 24 + 24);
}

// Pixels outside the requested region, 255 in the label map, are drawn without a tint.
TEST(DrawSegmentation, DoesNotColorOutsideTheRegion) {
  cv::Mat labels(300, 400, CV_8UC1, cv::Scalar(255));
  labels(cv::Rect(100, 100, 100, 100)) = 1;
  Segmentation answer;
  answer.picture_width = answer.width = 400;
  answer.picture_height = answer.height = 300;
  answer.label_map = Encoded(labels);
  answer.areas = {{1, "dog", 10000, 1}};
  const std::string path = ::testing::TempDir() + "region.png";
  ASSERT_TRUE(DrawSegmentation(Encoded(PlainPicture(400, 300)), answer, path).ok());
  const cv::Mat drawn = ReadPng(path);
  EXPECT_EQ(drawn.at<cv::Vec3b>(20, 20), cv::Vec3b(90, 120, 60));
  EXPECT_NE(drawn.at<cv::Vec3b>(150, 150), cv::Vec3b(90, 120, 60));
}

TEST(DrawSegmentation, LeavesTheBackgroundAsItIs) {
  cv::Mat labels(300, 400, CV_8UC1, cv::Scalar(0));
  labels(cv::Rect(100, 100, 100, 100)) = 1;
  Segmentation answer;
  answer.picture_width = answer.width = 400;
  answer.picture_height = answer.height = 300;
  answer.label_map = Encoded(labels);
  answer.areas = {{0, "background", 110000, 0.92f}, {1, "dog", 10000, 0.08f}};
  const std::string path = TemporaryPng();
  ASSERT_TRUE(DrawSegmentation(Encoded(PlainPicture(400, 300)), answer, path).ok());
  EXPECT_EQ(ReadPng(path).at<cv::Vec3b>(20, 20), cv::Vec3b(90, 120, 60));
  EXPECT_NE(ReadPng(path).at<cv::Vec3b>(150, 150), cv::Vec3b(90, 120, 60));
  // Another class 0 is an object like the others.
  answer.areas[0].label = "road";
  ASSERT_TRUE(DrawSegmentation(Encoded(PlainPicture(400, 300)), answer, path).ok());
  EXPECT_NE(ReadPng(path).at<cv::Vec3b>(20, 20), cv::Vec3b(90, 120, 60));
}

// Two actions that overlap take two rows, and one after them the first row again.
TEST(DrawTimeline, DrawsOverlappingActionsBelowEachOther) {
  Actions answer;
  answer.frames = 100;
  answer.frames_per_second = 10;
  const auto rows_of = [&answer] {
    const std::string path = TemporaryPng();
    EXPECT_TRUE(DrawTimeline(answer, path).ok());
    return ReadPng(path).rows;
  };
  const auto add = [&answer](double start, double end) {
    Action action;
    action.start_seconds = start;
    action.end_seconds = end;
    action.score = 0.5f;
    action.label = "dive";
    answer.items.push_back(action);
  };
  add(1, 4);
  const int one = rows_of();
  add(5, 6);
  EXPECT_EQ(rows_of(), one);
  add(3, 5.5);
  EXPECT_EQ(rows_of(), one + 40);
}

TEST(DrawLoad, MakesRoomForLongNames) {
  LoadDrawing load;
  load.title = "a title";
  load.points = {{1, 2, true}};
  load.stages = {{"a stage with quite a long name", 1, 2, 3}};
  const auto ink_at = [&load](int from, int to) {
    const std::string path = TemporaryPng();
    EXPECT_TRUE(DrawLoad(load, path).ok());
    cv::Mat grey;
    cv::cvtColor(ReadPng(path), grey, cv::COLOR_BGR2GRAY);
    cv::Mat text;
    cv::inRange(grey(cv::Range(540, 574), cv::Range(from, to)), 200, 255, text);
    return cv::countNonZero(text);
  };
  // The whole name stands there, beyond the column that is enough for short ones.
  EXPECT_GT(ink_at(24, 120), 0);
  EXPECT_GT(ink_at(200, 300), 0);
  load.stages[0].name = "decode";
  EXPECT_EQ(ink_at(200, 300), 0);
}

Classification Explained() {
  Classification answer;
  answer.picture_width = 400;
  answer.picture_height = 300;
  cv::Mat shades(2, 4, CV_8UC1, cv::Scalar(0));
  shades.at<uchar>(0, 0) = 255;
  answer.explanation = Explanation{.layer = "layer3.attention", .maps = {}, .available = 9};
  for (int i = 0; i < 5; ++i)
    answer.explanation->maps.push_back({"key " + std::to_string(i), 4, 2, Encoded(shades), 0, 1});
  return answer;
}

TEST(DrawAttention, ShowsEveryMapOverThePicture) {
  const std::string path = ::testing::TempDir() + "attention.png";
  ASSERT_TRUE(DrawAttention(Encoded(PlainPicture(400, 300)), std::nullopt, Explained(), path).ok());
  const cv::Mat drawn = ReadPng(path);
  EXPECT_EQ(drawn.cols, 12 + 4 * (320 + 12));
  EXPECT_EQ(drawn.rows, 24 + 44 + 2 * (240 + 44));
  // The largest attention is red, the smallest turbo's dark blue, both blended with the picture.
  const auto at = [&drawn](int x, int y) { return drawn.at<cv::Vec3b>(12 + 44 + y, 12 + x); };
  EXPECT_GT(at(10, 10)[2], at(200, 200)[2]);
  EXPECT_NE(at(200, 200), cv::Vec3b(32, 28, 26));
}

TEST(DrawAttention, OfARegionShowsTheRegion) {
  cv::Mat picture = PlainPicture(400, 300);
  picture(cv::Rect(100, 50, 60, 60)) = cv::Scalar(255, 255, 255);
  const std::string path = ::testing::TempDir() + "attention_region.png";
  ASSERT_TRUE(DrawAttention(Encoded(picture), Region{100, 50, 60, 60}, Explained(), path).ok());
  const cv::Mat drawn = ReadPng(path);
  EXPECT_EQ(drawn.rows, 24 + 44 + 2 * (320 + 44));
  EXPECT_GT(drawn.at<cv::Vec3b>(300, 200)[1], 100);
}

TEST(DrawAttention, OfAClassifierShowsWhatItSaw) {
  // White where the network looked, and black beyond the picture.
  cv::Mat picture = PlainPicture(400, 300);
  picture(cv::Rect(200, 100, 200, 100)) = cv::Scalar(255, 255, 255);
  Classification answer = Explained();
  answer.explanation->seen = PicturePart{200, 100, 400, 100};
  const std::string path = ::testing::TempDir() + "attention_seen.png";
  ASSERT_TRUE(DrawAttention(Encoded(picture), std::nullopt, answer, path).ok());
  const cv::Mat drawn = ReadPng(path);
  EXPECT_EQ(drawn.rows, 24 + 44 + 2 * (80 + 44));
  const auto light = [&drawn](int x) {
    const auto& color = drawn.at<cv::Vec3b>(12 + 44 + 70, 12 + x);
    return color[0] + color[1] + color[2];
  };
  EXPECT_GT(light(100), light(300) + 150);
}

TEST(DrawAttention, RejectsPartsThatNoNetworkSees) {
  const std::string path = ::testing::TempDir() + "attention_part.png";
  for (const PicturePart& part :
       {PicturePart{0, 0, 0, 100}, PicturePart{0, 0, NAN, 100}, PicturePart{0, 0, 1e9F, 1e9F},
        PicturePart{-1e9F, 0, 100, 100}, PicturePart{500, 0, 100, 100}, PicturePart{0, INFINITY, 100, 100},
        PicturePart{-300, 0, 100, 100}}) {
    Classification answer = Explained();
    answer.explanation->seen = part;
    EXPECT_FALSE(DrawAttention(Encoded(PlainPicture(400, 300)), std::nullopt, answer, path).ok()) << part.x;
  }
}

TEST(DrawAttention, WorksWithoutAPictureAndRejectsInvalidMaps) {
  const std::string path = ::testing::TempDir() + "attention_alone.png";
  EXPECT_TRUE(DrawAttention("a video", std::nullopt, Explained(), path).ok());
  Classification broken = Explained();
  broken.explanation->maps[1].width = 5;
  EXPECT_THAT(std::string(DrawAttention("", std::nullopt, broken, path).message()),
              ::testing::HasSubstr("'key 1' is not a grey PNG of 5x2"));
  broken.explanation->maps.clear();
  EXPECT_TRUE(DrawAttention("", std::nullopt, broken, path).ok());
}

TEST(DecodePicture, AppliesTheOrientation) {
  const std::string jpeg = Encoded(PlainPicture(40, 20), ".jpg");
  const std::string exif(
      "\xff\xe1\0\x22"
      "Exif\0\0"
      "MM\0*\0\0\0\x08"
      "\0\x01"
      "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
      "\0\0\0\0",
      36);
  Answer answer;
  answer.picture_width = 20;
  answer.picture_height = 40;
  const auto upright = DecodePicture(jpeg.substr(0, 2) + exif + jpeg.substr(2), answer);
  ASSERT_TRUE(upright.ok()) << upright.status();
  EXPECT_EQ(upright->size(), cv::Size(20, 40));
}

}  // namespace
}  // namespace saccade::client
