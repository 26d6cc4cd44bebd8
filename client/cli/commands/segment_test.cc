#include "client/cli/commands/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWidth = 400, kHeight = 200;

// A person on the left quarter, background elsewhere.
cv::Mat Labels() {
  cv::Mat labels(kHeight, kWidth, CV_8UC1, cv::Scalar(0));
  labels(cv::Rect(0, 0, kWidth / 4, kHeight)) = 15;
  return labels;
}

Segmentation Person(LabelMapFormat format) {
  Segmentation answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.picture_width = answer.width = kWidth;
  answer.picture_height = answer.height = kHeight;
  answer.format = format;
  if (format == LabelMapFormat::kPng) answer.label_map = Encoded(Labels());
  answer.areas = {{0, "background", 60000, 0.75f}, {15, "person", 20000, 0.25f}};
  return answer;
}

class Segment : public CommandTest {
 protected:
  Segment() {
    daemon_.SetPredict([](const FakeRequest& request) { return Person(request.segment.format); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "x") {
    return RunCommand("segment", arguments, input);
  }
};

TEST_F(Segment, PrintsTheAreasAndRequestsNoMap) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.segment.format, LabelMapFormat::kNone);
    return Person(LabelMapFormat::kNone);
  });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("-  400x200  net 2  "));
  EXPECT_EQ(Lines(run),
            "   75.0%  ##################         0  background\n"
            "   25.0%  ######                    15  person\n");
}

TEST_F(Segment, WritesOneJsonDocument) {
  const RunResult run = Run({"-", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["results"][0]["areas"], nlohmann::json::parse(R"([
      {"class_index": 0, "label": "background", "pixels": 60000, "fraction": 0.75},
      {"class_index": 15, "label": "person", "pixels": 20000, "fraction": 0.25}])"));
}

TEST_F(Segment, WritesTheLabelMapAndDrawsItOverThePicture) {
  const std::string path = File("cat.png", Encoded(PlainPicture(kWidth, kHeight)));
  const RunResult run = Run({path, "-o", folder_ / "out", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string overlay_path = folder_ / "out" / "cat.segment.overlay.png";
  const std::string labels_path = folder_ / "out" / "cat.labels.png";
  EXPECT_EQ(run.err, "wrote " + overlay_path + "\nwrote " + labels_path + "\n");
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["results"][0]["overlay"], overlay_path);
  EXPECT_EQ(json["results"][0]["label_map"], labels_path);

  const cv::Mat labels = ReadPng(labels_path);
  ASSERT_EQ(labels.type(), CV_8UC1);
  EXPECT_EQ(cv::norm(labels, Labels()), 0);
  const cv::Mat overlay = ReadPng(overlay_path);
  ASSERT_EQ(overlay.cols, kWidth);
  ASSERT_GT(overlay.rows, kHeight) << "there is no legend";
  // Pascal VOC's colour of a person is (192, 128, 128); the overlay blends 60 % of it with the picture's (60,
  // 120, 90).
  EXPECT_EQ(overlay.at<cv::Vec3b>(100, 50), cv::Vec3b(113, 125, 139));
  EXPECT_EQ(overlay.at<cv::Vec3b>(100, 300), cv::Vec3b(90, 120, 60)) << "the background";
  EXPECT_EQ(overlay.at<cv::Vec3b>(100, 99), cv::Vec3b(128, 128, 192)) << "the border";
}

TEST_F(Segment, WritesALabelMapOfAnotherSizeAndDrawsItOverAllOfThePicture) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    Segmentation answer = Person(request.segment.format);
    if (!request.segment.size) return absl::InvalidArgumentError("no size came");
    if (!request.segment.size->network) {
      EXPECT_EQ(request.segment.size->width, 100);
      EXPECT_EQ(request.segment.size->height, 50);
    }
    cv::Mat small;
    cv::resize(Labels(), small, cv::Size(100, 50), 0, 0, cv::INTER_NEAREST);
    answer.width = 100;
    answer.height = 50;
    answer.label_map = Encoded(small);
    return answer;
  });
  const std::string path = File("cat.png", Encoded(PlainPicture(kWidth, kHeight)));
  for (const char* size : {"100x50", "network"}) {
    const RunResult run = Run({path, "-o", folder_ / "out", "--size", size});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(ReadPng(folder_ / "out" / "cat.labels.png").size(), cv::Size(100, 50));
    const cv::Mat overlay = ReadPng(folder_ / "out" / "cat.segment.overlay.png");
    ASSERT_EQ(overlay.cols, kWidth);
    EXPECT_EQ(overlay.at<cv::Vec3b>(100, 50), cv::Vec3b(113, 125, 139));
    EXPECT_EQ(overlay.at<cv::Vec3b>(100, 300), cv::Vec3b(90, 120, 60));
  }
  for (const char* none : {"100", "0x5", "axb", "1x2x3", "picture"})
    EXPECT_THAT(Run({path, "-o", folder_, "--size", none}).err, HasSubstr("expected WIDTHxHEIGHT or network"))
        << none;
  EXPECT_EQ(Run({path, "--size", "100x50"}).exit_code, 2) << "nothing would be that large";
}

TEST_F(Segment, RejectsAnInvalidLabelMap) {
  const std::string path = File("cat.png", Encoded(PlainPicture(kWidth, kHeight)));
  for (const std::string& bytes :
       {std::string(), std::string("no PNG"), Encoded(PlainPicture(kWidth, kHeight)),
        Encoded(cv::Mat(7, 9, CV_8UC1, cv::Scalar(0)))}) {
    daemon_.SetPredict([bytes](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
      Segmentation answer = Person(request.segment.format);
      answer.label_map = bytes;
      return answer;
    });
    const RunResult run = Run({path, "-o", folder_});
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr("no output: the daemon's label map is not a grey PNG of 400x200 pixels"));
  }
}

TEST_F(Segment, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Disparity(); });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a disparity instead of a segmentation"));
}

}  // namespace
}  // namespace saccade::client
