#include "client/cli/commands/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "client/cli/drawing/palette.h"
#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two jumps and an action without a name, in 100 seconds.
Actions Sports() {
  Actions answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.timings.infer = absl::Milliseconds(7);
  answer.picture_width = 640;
  answer.picture_height = 360;
  answer.items = {{12.34, 25, 0.9f, 3, "jump", 123.4f, 250},
                  {61.96, 80.5, 0.5f, 12, "", 619.6f, 805},
                  {70, 75, 0.25f, 3, "jump", 700, 750}};
  answer.frames = 1000;
  answer.frames_per_second = 10;
  return answer;
}

Actions Nothing() {
  Actions answer = Sports();
  answer.items.clear();
  return answer;
}

class ActionsTest : public CommandTest {
 protected:
  ActionsTest() {
    daemon_.SetPredict([](const FakeRequest&) { return Sports(); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "x") {
    return RunCommand("actions", arguments, input);
  }

  std::string Folder(const std::string& name, const std::vector<std::string>& files) {
    std::filesystem::create_directories(folder_ / name);
    for (const std::string& file : files) File(name + "/" + file, file);
    return folder_ / name;
  }

  cv::Mat Timeline(const Actions& answer) {
    daemon_.SetPredict([answer](const FakeRequest&) { return answer; });
    const RunResult run = Run({File("clip.mp4", "x"), "-o", folder_});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return ReadPng(folder_ / "clip.timeline.png");
  }
};

TEST_F(ActionsTest, PrintsOneLinePerAction) {
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("-  640x360  net 2  "));
  EXPECT_EQ(Lines(run),
            "  00:12.3-00:25.0   90.0%   3  jump\n"
            "  01:02.0-01:20.5   50.0%  12\n"
            "  01:10.0-01:15.0   25.0%   3  jump\n"
            "  in 1000 frames, 10 a second\n");
}

TEST_F(ActionsTest, PrintsThatNothingWasFound) {
  daemon_.SetPredict([](const FakeRequest&) { return Nothing(); });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(Lines(run), "  nothing found in 1000 frames, 10 a second\n");
  EXPECT_EQ(nlohmann::json::parse(Run({"-", "--json"}).out)["results"][0]["actions"],
            nlohmann::json::array());
}

TEST_F(ActionsTest, SendsVideosAndTheOptions) {
  daemon_.SetPredict([](const FakeRequest& request) {
    EXPECT_EQ(request.picture, "video");
    EXPECT_TRUE(request.frames.empty());
    EXPECT_EQ(request.actions.score_threshold, 0.25f);
    EXPECT_EQ(request.actions.top_k, 9);
    EXPECT_THAT(request.actions.classes, ElementsAre(7, 1));
    EXPECT_EQ(request.request.version, 2);
    return Nothing();
  });
  EXPECT_EQ(Run({File("a.mp4", "video"), File("b.mkv", "video"), "--score-threshold", "0.25", "--top-k", "9",
                 "--class", "7", "--class", "1", "--model-version", "2"})
                .exit_code,
            0);
}

TEST_F(ActionsTest, TakesClassesByName) {
  Model model;
  model.name = "net";
  model.labels = {"run", "long jump"};
  daemon_.SetModels({model});
  daemon_.SetPredict([](const FakeRequest& request) {
    EXPECT_THAT(request.actions.classes, ElementsAre(1));
    return Nothing();
  });
  EXPECT_EQ(Run({"-", "--class", "long jump"}).exit_code, 0);
  EXPECT_EQ(Run({"-", "--class", "swim"}).exit_code, 2);
}

TEST_F(ActionsTest, SendsPicturesAsOneClipInTheOrderGiven) {
  daemon_.SetPredict([](const FakeRequest& request) {
    EXPECT_EQ(request.picture, "");
    EXPECT_THAT(request.frames, ElementsAre("second", "first"));
    EXPECT_EQ(request.frames_per_second, 12.5);
    return Sports();
  });
  const std::string b = File("b.png", "second"), a = File("a.png", "first");
  const RunResult run = Run({b, a, "--frames", "--fps", "12.5"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith(b + "  640x360"));
}

TEST_F(ActionsTest, SendsFoldersAsClipsInTheOrderOfTheirNames) {
  daemon_.SetPredict([](const FakeRequest& request) {
    if (request.frames.size() == 1) {
      EXPECT_THAT(request.frames, ElementsAre("0.bmp"));
    } else {
      EXPECT_THAT(request.frames, ElementsAre("f1.png", "f2.JPG", "f10.png"));
    }
    EXPECT_EQ(request.frames_per_second, 0);
    return Sports();
  });
  const std::string one = Folder("one", {"f10.png", "f2.JPG", "notes.txt", "f1.png"}) + "/";
  const std::string two = Folder("two", {"0.bmp"});
  const RunResult run = Run({one, two, "--frames", "--json", "-o", folder_ / "out"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["results"].size(), 2u);
  EXPECT_EQ(json["results"][0]["file"], one);
  EXPECT_EQ(json["results"][0]["timeline"], (folder_ / "out" / "one.timeline.png").string());
  EXPECT_EQ(json["results"][1]["file"], two);
}

TEST_F(ActionsTest, RejectsInputsThatAreNoClip) {
  const std::string folder = Folder("none", {"notes.txt"}), picture = File("a.png", "x");
  const RunResult none = Run({folder, "--frames"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.err, "saccade: " + folder + " has no JPEG, PNG, WebP, TIFF or BMP files in it\n");
  const RunResult mixed = Run({folder, picture, "--frames"});
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_THAT(mixed.err, HasSubstr("folders with one clip each, not both"));
  const RunResult video = Run({folder});
  EXPECT_EQ(video.exit_code, 1);
  EXPECT_THAT(video.err,
              HasSubstr("has no MP4, MOV, Matroska, WebM or AVI files in it; to send pictures or folders of "
                        "pictures, use --frames"));
  const RunResult missing = Run({picture, "/nonesuch.png", "--frames"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.err, "saccade: /nonesuch.png cannot be opened: No such file or directory\n");
}

TEST_F(ActionsTest, WritesOneJsonDocument) {
  const RunResult run = Run({"-", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out)["results"][0];
  EXPECT_EQ(result["clip"], nlohmann::json::parse(R"({"frames": 1000, "frames_per_second": 10.0})"));
  ASSERT_EQ(result["actions"].size(), 3u);
  EXPECT_EQ(result["actions"][0], nlohmann::json::parse(R"(
      {"class_index": 3, "label": "jump", "score": 0.9, "start_seconds": 12.34, "end_seconds": 25.0,
       "start_frame": 123.4, "end_frame": 250.0})"));
}

TEST_F(ActionsTest, DrawsOneLanePerClass) {
  const cv::Mat timeline = Timeline(Sports());
  ASSERT_EQ(timeline.size(), cv::Size(1200, 20 + 2 * 40 + 48));
  // Between the end of the titles and the right margin, which the axis of 100 seconds fills.
  int left = 0;
  const auto is = [&](int x, int y, int64_t class_index) {
    const cv::Scalar color = BrightColor(class_index);
    const auto& pixel = timeline.at<cv::Vec3b>(y, x);
    return std::abs(pixel[0] - color[0]) < 2 && std::abs(pixel[1] - color[1]) < 2 &&
           std::abs(pixel[2] - color[2]) < 2;
  };
  const int first = 20 + 8, second = first + 40;
  for (int x = 0; x < 1200 && left == 0; ++x) {
    if (is(x, first, 3)) left = x;
  }
  ASSERT_GT(left, 0) << "there is no jump";
  // The action lasts from 12.34 to 25 seconds; the tolerance is below one second on the axis.
  int right = left;
  while (is(right, first, 3)) ++right;
  const double second_pixels = (right - left) / (25 - 12.34);
  const double zero = 1160 - 100 * second_pixels;
  EXPECT_NEAR(left, zero + 12.34 * second_pixels, 0.03 * 1160);
  EXPECT_TRUE(is(static_cast<int>(zero + 72 * second_pixels), first, 3));
  EXPECT_TRUE(is(static_cast<int>(zero + 72 * second_pixels), second, 12));
  EXPECT_FALSE(is(static_cast<int>(zero + 72 * second_pixels), second, 3));
  EXPECT_FALSE(is(static_cast<int>(zero + 50 * second_pixels), first, 3));
}

TEST_F(ActionsTest, DrawsInvalidTimes) {
  EXPECT_EQ(Timeline(Nothing()).rows, 20 + 40 + 48);
  Actions answer = Sports();
  answer.frames_per_second = 0;
  answer.items = {{NAN, NAN, NAN, -1, std::string(1000, 'w'), 0, 0},
                  {5, 2, 2, 0, "", 0, 0},
                  {-1e300, 1e300, 1, 1, "", 0, 0},
                  {0, INFINITY, 1, 1, "", 0, 0}};
  EXPECT_EQ(Timeline(answer).rows, 20 + 4 * 40 + 48) << "two of one class overlap";
  answer.items.clear();
  for (int i = 0; i < 100; ++i) answer.items.push_back({1.0 * i, 2.0 * i, 0.5f, i, "", 0, 0});
  EXPECT_EQ(Timeline(answer).rows, 20 + 30 * 40 + 48);
}

TEST_F(ActionsTest, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Classification(); });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a classification instead of actions"));
}

}  // namespace
}  // namespace saccade::client
