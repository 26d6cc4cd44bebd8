#include "client/cli/commands/stereo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWidth = 400, kHeight = 100;

// Grows from 0.5 on the left by 1/256 per pixel.
float ValueAt(int x) { return 0.5f + static_cast<float>(x) / 256; }

std::string Map(DisparityFormat format) {
  cv::Mat steps(kHeight, kWidth, CV_16UC1);
  std::vector<float> values;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      values.push_back(ValueAt(x));
      steps.at<uint16_t>(y, x) = static_cast<uint16_t>(ValueAt(x) * 256);
    }
  }
  if (format == DisparityFormat::kPng16) return Encoded(steps);
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Disparity Ramp(DisparityFormat format) {
  Disparity answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.picture_width = answer.width = kWidth;
  answer.picture_height = answer.height = kHeight;
  answer.format = format;
  answer.map = Map(format);
  answer.min = 0.5f;
  answer.max = 2.0625f;
  answer.mean = 1.25f;
  return answer;
}

class Stereo : public CommandTest {
 protected:
  Stereo() {
    daemon_.SetPredict([](const FakeRequest& request) { return Ramp(request.stereo.format); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "x") {
    return RunCommand("stereo", arguments, input);
  }
};

TEST_F(Stereo, SendsPairsAndPrintsTheirDisparities) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.right, request.picture == "a" ? "b" : "d");
    Disparity answer = Ramp(request.stereo.format);
    if (request.picture != "a") answer.max = 99;
    return answer;
  });
  const std::string a = File("a", "a"), b = File("b", "b"), c = File("c", "c"), d = File("d", "d");
  const RunResult run = Run({a, b, c, d});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith(a + " " + b + "  400x100  net 2  "));
  EXPECT_THAT(run.out, HasSubstr("\n  disparity 0.50 to 2.06 px, 1.25 in the mean\n" + c + " " + d));
  EXPECT_THAT(run.out, HasSubstr("\n  disparity 0.50 to 99.00 px"));
}

TEST_F(Stereo, WritesOneJsonDocument) {
  const std::string right = File("right.png", "x");
  const RunResult run = Run({"-", right, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out)["results"][0];
  EXPECT_EQ(result["file"], "-");
  EXPECT_EQ(result["right"], right);
  EXPECT_EQ(result["disparity"], nlohmann::json::parse(R"(
      {"width": 400, "height": 100, "min": 0.5, "max": 2.0625, "mean": 1.25})"));
}

TEST_F(Stereo, KeepsTheDaemonsPngAndColoursIt) {
  const std::string left = File("left.png", "l"), right = File("right.png", "r");
  const RunResult run = Run({left, right, "-o", folder_ / "out", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::filesystem::path out = folder_ / "out";
  const auto result = nlohmann::json::parse(run.out)["results"][0];
  EXPECT_EQ(result["colored"], (out / "left.colored.png").string());
  EXPECT_EQ(result["disparity_png"], (out / "left.disparity.png").string());
  EXPECT_FALSE(result.contains("disparity_pfm"));
  EXPECT_EQ(Read(out / "left.disparity.png"), Map(DisparityFormat::kPng16));

  const cv::Mat colored = ReadPng(out / "left.colored.png");
  ASSERT_EQ(colored.cols, kWidth);
  ASSERT_GT(colored.rows, kHeight) << "there is no scale";
  // Turbo goes from dark blue through green to dark red.
  EXPECT_EQ(colored.at<cv::Vec3b>(50, 0), cv::Vec3b(59, 18, 48));
  EXPECT_EQ(colored.at<cv::Vec3b>(50, kWidth - 1), cv::Vec3b(3, 4, 122));
  EXPECT_GT(colored.at<cv::Vec3b>(50, kWidth / 2)[1], 200);
}

TEST_F(Stereo, WritesAPfmOfTheExactValuesAndTheSamePngBesideIt) {
  const std::string left = File("left.png", "l"), right = File("right.png", "r");
  const RunResult run = Run({left, right, "-o", folder_, "--pfm"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const cv::Mat png = ReadPng(folder_ / "left.disparity.png");
  ASSERT_EQ(png.type(), CV_16UC1);
  EXPECT_EQ(png.at<uint16_t>(7, 100), 228);
  // OpenCV can read PFM files.
  const cv::Mat pfm = ReadPng(folder_ / "left.disparity.pfm");
  ASSERT_EQ(pfm.type(), CV_32FC1);
  ASSERT_EQ(pfm.size(), cv::Size(kWidth, kHeight));
  EXPECT_EQ(pfm.at<float>(7, 100), ValueAt(100));
}

TEST_F(Stereo, RequestsAMapOfAnotherSize) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (!request.stereo.size || request.stereo.size->width != 400)
      return absl::InvalidArgumentError("no size came");
    Disparity answer = Ramp(request.stereo.format);
    answer.picture_width = 800;
    answer.picture_height = 200;
    return answer;
  });
  const std::string left = File("left.png", "l"), right = File("right.png", "r");
  const RunResult run = Run({left, right, "-o", folder_, "--size", "400x100"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(ReadPng(folder_ / "left.disparity.png").size(), cv::Size(kWidth, kHeight));
}

TEST_F(Stereo, NamesTheUnreadablePictureOfAPair) {
  const RunResult run = Run({File("left.png", "l"), "/nonesuch.png"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "saccade: /nonesuch.png cannot be opened: No such file or directory\n");
}

TEST_F(Stereo, NamesTheRejectedPair) {
  daemon_.SetPredict([](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    return absl::InvalidArgumentError("the two pictures differ in size");
  });
  const std::string left = File("left.png", "l");
  const RunResult run = Run({left, "-"});
  EXPECT_EQ(run.exit_code, 67);
  EXPECT_EQ(run.err,
            "saccade: " + left + ", standard input: the two pictures differ in size (INVALID_ARGUMENT)\n");
}

TEST_F(Stereo, RejectsAnInvalidMap) {
  const std::string left = File("left.png", "l"), right = File("right.png", "r");
  for (const bool pfm : {false, true}) {
    daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
      Disparity answer = Ramp(request.stereo.format);
      answer.map.pop_back();
      answer.map = answer.map.substr(answer.map.size() / 2);
      return answer;
    });
    std::vector<std::string> arguments = {left, right, "-o", folder_};
    if (pfm) arguments.push_back("--pfm");
    const RunResult run = Run(arguments);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr("no output: the daemon's disparity map is not"));
  }
}

TEST_F(Stereo, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Segmentation(); });
  const std::string left = File("left.png", "l");
  const RunResult run = Run({left, left});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a segmentation instead of a disparity"));
}

}  // namespace
}  // namespace saccade::client
