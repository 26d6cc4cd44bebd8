#include "client/cli/commands/depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kWidth = 400, kHeight = 100;

// Grows by one per pixel from the left, beyond what a PNG of disparities can hold.
DepthMap Ramp(DisparityFormat format) {
  DepthMap answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.picture_width = answer.width = kWidth;
  answer.picture_height = answer.height = kHeight;
  answer.format = format;
  if (format == DisparityFormat::kFloat) {
    std::vector<float> values;
    for (int i = 0; i < kWidth * kHeight; ++i) values.push_back(static_cast<float>(i % kWidth));
    answer.map.resize(values.size() * sizeof(float));
    std::memcpy(answer.map.data(), values.data(), answer.map.size());
  } else {
    answer.map = "a PNG";
  }
  answer.max = kWidth - 1;
  answer.mean = 199.5f;
  return answer;
}

class Depth : public CommandTest {
 protected:
  Depth() {
    daemon_.SetPredict([](const FakeRequest& request) { return Ramp(request.stereo.format); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "x") {
    return RunCommand("depth", arguments, input);
  }
};

TEST_F(Depth, SendsPicturesAndPrintsTheirDepth) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.right, "");
    DepthMap answer = Ramp(request.stereo.format);
    if (request.picture != "a") answer.max = 0.125f;
    return answer;
  });
  const std::string a = File("a", "a"), b = File("b", "b");
  const RunResult run = Run({a, b});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith(a + "  400x100  net 2  "));
  EXPECT_THAT(run.out, HasSubstr("\n  depth 0 to 399, 199.5 in the mean\n" + b));
  EXPECT_THAT(run.out, HasSubstr("\n  depth 0 to 0.125, 199.5"));
}

TEST_F(Depth, WritesOneJsonDocument) {
  const RunResult run = Run({"-", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out)["results"][0];
  EXPECT_EQ(result["file"], "-");
  EXPECT_FALSE(result.contains("disparity"));
  EXPECT_EQ(result["depth"], nlohmann::json::parse(R"(
      {"width": 400, "height": 100, "min": 0, "max": 399, "mean": 199.5})"));
}

TEST_F(Depth, ColoursTheMapAndWritesItsExactValues) {
  const RunResult run = Run({File("street.png", "s"), "-o", folder_ / "out", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::filesystem::path out = folder_ / "out";
  const auto result = nlohmann::json::parse(run.out)["results"][0];
  EXPECT_EQ(result["colored"], (out / "street.depth.colored.png").string());
  EXPECT_EQ(result["depth_pfm"], (out / "street.depth.pfm").string());
  const cv::Mat colored = ReadPng(out / "street.depth.colored.png");
  ASSERT_EQ(colored.cols, kWidth);
  ASSERT_GT(colored.rows, kHeight) << "there is no scale";
  // Turbo goes from dark blue to dark red.
  EXPECT_EQ(colored.at<cv::Vec3b>(50, 0), cv::Vec3b(59, 18, 48));
  EXPECT_EQ(colored.at<cv::Vec3b>(50, kWidth - 1), cv::Vec3b(3, 4, 122));
  // OpenCV can read PFM files.
  const cv::Mat pfm = ReadPng(out / "street.depth.pfm");
  ASSERT_EQ(pfm.type(), CV_32FC1);
  ASSERT_EQ(pfm.size(), cv::Size(kWidth, kHeight));
  EXPECT_EQ(pfm.at<float>(7, 300), 300);
}

TEST_F(Depth, RequestsAMapOfAnotherSizeAndARegion) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (!request.stereo.size || request.stereo.size->width != 400 || !request.request.region)
      return absl::InvalidArgumentError("no size or no region came");
    return Ramp(request.stereo.format);
  });
  const RunResult run = Run({File("a.png", "a"), "-o", folder_, "--size", "400x100", "--region", "1,2,3,4"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Depth, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Segmentation(); });
  const RunResult run = Run({File("a.png", "a")});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a segmentation instead of a depth map"));
}

}  // namespace
}  // namespace saccade::client
