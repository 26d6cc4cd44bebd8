#include "client/cli/commands/classify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/synchronization/notification.h"
#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"
#include "client/cpp/status.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Classification Cat() {
  Classification answer;
  answer.model = "sanet";
  answer.version = 3;
  answer.classes = {{281, "tabby", 0.75f, 4.5f}, {7, "", 0.125f, 3.5f}};
  answer.timings.infer = absl::Milliseconds(7);
  answer.timings.encode = absl::Microseconds(500);
  answer.timings.total = absl::Microseconds(8250);
  answer.batch_size = 4;
  answer.picture_width = 640;
  answer.picture_height = 480;
  return answer;
}

class Classify : public CommandTest {
 protected:
  Classify() {
    daemon_.SetPredict([](const FakeRequest&) { return Cat(); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "",
                bool color = false) {
    return RunCommand("classify", arguments, input, color);
  }

  // The daemon reports the size of the test's picture as `width` x `height`.
  void AnswerAbout(int width, int height) {
    daemon_.SetPredict([=](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
      Classification answer = Cat();
      answer.picture_width = width;
      answer.picture_height = height;
      return answer;
    });
  }
};

TEST_F(Classify, PrintsOneLinePerClass) {
  const RunResult run = Run({"-"}, "picture");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, StartsWith("-  640x480  sanet 3  "));
  EXPECT_THAT(run.out, HasSubstr("ms (infer 7.0, encode 0.5, batch of 4)\n"));
  EXPECT_EQ(Lines(run),
            "   75.0%  ##################        281  tabby\n"
            "   12.5%  ###                         7\n");
}

TEST_F(Classify, AsksAboutARegionAndDrawsAttention) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (!request.request.region || request.request.region->width != 7 || !request.request.explain)
      return absl::InvalidArgumentError("neither region nor explain came");
    Classification answer = Cat();
    answer.picture_width = 40;
    answer.picture_height = 30;
    answer.explanation = Explanation{.layer = request.request.explain->layer, .maps = {}, .available = 1};
    answer.explanation->maps.push_back(
        {"head 0", 4, 3, Encoded(cv::Mat(3, 4, CV_8UC1, cv::Scalar(9))), 0, 2});
    return answer;
  });
  const std::string picture = File("cat.png", Encoded(PlainPicture(40, 30)));
  const RunResult run = Run({picture, "--region", "1,2,7,8", "--explain", "stage2", "--json", "-o", folder_});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out)["results"][0];
  EXPECT_EQ(result["attention"]["layer"], "stage2");
  EXPECT_EQ(result["attention"]["maps"][0]["max"], 2);
  EXPECT_FALSE(ReadPng(result["attention_map"]).empty());
  EXPECT_EQ(Run({picture, "--region", "1,2,7"}).exit_code, 2);
  EXPECT_EQ(nlohmann::json::parse(Run({picture, "--region", "1,2,7,8", "--json", "--explain"})
                                      .out)["results"][0]["attention"]["layer"],
            "");
}

TEST_F(Classify, AsksForTheAttentionOfPositions) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_TRUE(request.request.explain.has_value());
    if (!request.request.explain) return Cat();
    const Explain& explain = *request.request.explain;
    EXPECT_EQ(explain.max_maps, 24);
    EXPECT_EQ(explain.positions.size(), 2);
    if (explain.positions.size() != 2) return Cat();
    EXPECT_EQ(explain.positions[0].x, 0.25f);
    EXPECT_EQ(explain.positions[0].y, 0.75f);
    EXPECT_EQ(explain.positions[1].y, 1);
    return Cat();
  });
  for (const char* layer : {"--explain", "--explain=layer4"})
    EXPECT_EQ(
        Run({"-", layer, "--explain-at", "0.25,0.75", "--explain-at", "0,1", "--explain-maps", "24"}, "x")
            .exit_code,
        0);
  for (const char* none : {"0.5", "0.5,0.5,0.5", "1.01,0", "0,-0.1", "nan,0", "a,b"})
    EXPECT_THAT(Run({"-", "--explain", "--explain-at", none}, "x").err, HasSubstr("numbers from 0 to 1, X,Y"))
        << none;
  const RunResult without = Run({"-", "--explain-at", "0,0"}, "x");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("--explain-at requires --explain"));
}

TEST_F(Classify, OmitsLessProbableClasses) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_EQ(request.classify.probability_threshold, 0.125f);
    return Cat();
  });
  EXPECT_EQ(Run({"-", "--probability-threshold", "0.125"}, "x").exit_code, 0);
  EXPECT_EQ(Run({"-", "--probability-threshold", "2"}, "x").exit_code, 2);
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    EXPECT_FALSE(request.classify.probability_threshold.has_value());
    return Cat();
  });
  EXPECT_EQ(Run({"-"}, "x").exit_code, 0);
}

TEST_F(Classify, WritesOneJsonLinePerAnswer) {
  const RunResult run = Run({File("a.png", "a"), File("b.png", "b"), "--format", "jsonl"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::istringstream lines(run.out);
  std::vector<std::string> files;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["model"], "net");
    EXPECT_EQ(json["classes"].size(), 2);
    files.push_back(std::filesystem::path(std::string(json["file"])).filename());
  }
  EXPECT_THAT(files, ::testing::ElementsAre("a.png", "b.png"));
}

TEST_F(Classify, RetriesTemporaryRejections) {
  std::atomic<int> asked = 0;
  daemon_.SetPredict([&](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    if (asked++ < 2) return absl::UnavailableError("draining");
    return Cat();
  });
  EXPECT_EQ(Run({File("a.png", "a")}).exit_code, 0);
  EXPECT_EQ(asked, 3);
  asked = 0;
  EXPECT_EQ(Run({File("a.png", "a"), "--retries", "1"}).exit_code, 78);
  EXPECT_EQ(asked, 2);
  asked = 0;
  daemon_.SetPredict([&](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    if (asked++ < 2) return absl::CancelledError("the port is closing");
    return Cat();
  });
  EXPECT_EQ(Run({File("a.png", "a")}).exit_code, 0);
  EXPECT_EQ(asked, 3);
}

// As in `saccade classify ... | head -1`: the second picture is due again after ten seconds.
TEST_F(Classify, RepeatsNothingOnceItsOutputIsClosed) {
  absl::Notification second_asked;
  std::atomic<int> asked = 0;
  daemon_.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.picture == "first") {
      second_asked.WaitForNotification();
      return Cat();
    }
    if (++asked == 1) second_asked.Notify();
    absl::Status busy = absl::UnavailableError("draining");
    SetRetryAfter(busy, "10000");
    return busy;
  });
  std::istringstream in;
  std::ostream closed(nullptr);
  std::ostringstream err;
  Console console{in, closed, err};
  EXPECT_EQ(RunApp({"classify", "--url", daemon_.url(), "--model", "net", File("a.png", "first"),
                    File("b.png", "second")},
                   console),
            1);
  EXPECT_EQ(asked, 1);
}

TEST_F(Classify, ColorsOnlyIfTheConsoleAcceptsThem) {
  EXPECT_THAT(Run({"-"}, "picture", true).out, HasSubstr("\033[36m"));
  EXPECT_THAT(Run({"-", "--no-color"}, "picture", true).out, Not(HasSubstr("\033")));
  EXPECT_THAT(Run({"-"}, "picture", false).out, Not(HasSubstr("\033")));
}

TEST_F(Classify, SendsTheFileAndTheOptions) {
  const std::string path = File("cat.jpg", std::string("\xff\xd8\0jpeg", 7));
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<Classification> {
    EXPECT_EQ(request.picture, std::string("\xff\xd8\0jpeg", 7));
    EXPECT_EQ(request.model, "net");
    EXPECT_EQ(request.classify.top_k, 3);
    EXPECT_EQ(request.request.version, 2);
    EXPECT_EQ(request.request.priority, -5);
    return Cat();
  });
  EXPECT_EQ(Run({path, "--top-k", "3", "--model-version", "2", "--priority", "-5"}).exit_code, 0);
}

TEST_F(Classify, WritesOneJsonDocument) {
  const std::string good = File("good.jpg", "good");
  const std::string bad = File("bad.jpg", "bad");
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<Classification> {
    if (request.picture == "bad") return absl::InvalidArgumentError("encoded: not a picture");
    return Cat();
  });
  const RunResult run = Run({"--json", good, bad, "/nonesuch.jpg"});
  EXPECT_EQ(run.exit_code, 67);

  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["model"], "net");
  ASSERT_EQ(json["results"].size(), 3u);
  const nlohmann::json timings = json["results"][0]["timings_ms"];
  EXPECT_GT(timings["round_trip"].get<double>(), 0);
  EXPECT_EQ(timings["infer"], 7.0);
  EXPECT_EQ(timings["encode"], 0.5);
  EXPECT_EQ(timings["total"], 8.25);
  nlohmann::json first = json["results"][0];
  first.erase("timings_ms");
  nlohmann::json expected = nlohmann::json::parse(R"({
      "picture": {"width": 640, "height": 480}, "model_version": 3, "batch_size": 4,
      "classes": [{"index": 281, "label": "tabby", "probability": 0.75},
                  {"index": 7, "label": "", "probability": 0.125}]})");
  expected["file"] = good;
  EXPECT_EQ(first, expected);
  EXPECT_EQ(json["results"][1]["file"], bad);
  EXPECT_EQ(json["results"][1]["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(json["results"][1]["error"]["message"], "encoded: not a picture");
  EXPECT_EQ(json["results"][2]["error"]["code"], "UNREADABLE_FILE");
}

// The first response is held back until the last request has arrived: results are not printed in order of
// arrival.
TEST_F(Classify, KeepsTheOrderOfThePictures) {
  absl::Notification last_asked;
  daemon_.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<Classification> {
    if (request.picture == "first") last_asked.WaitForNotification();
    if (request.picture == "last") last_asked.Notify();
    return Cat();
  });
  const std::string first = File("first.jpg", "first");
  const std::string last = File("last.jpg", "last");
  const RunResult run = Run({first, last});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_LT(run.out.find("first.jpg"), run.out.find("last.jpg"));
  EXPECT_NE(run.out.find("last.jpg"), std::string::npos);
}

// The third file is created while the first two requests are in flight and unanswered. It can be read only if
// the client waits for a response before it reads the third file.
TEST_F(Classify, KeepsToItsConcurrency) {
  absl::Notification second_asked, third_made;
  daemon_.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<Classification> {
    if (request.picture == "1") {
      second_asked.WaitForNotification();
      File("3", "3");
      third_made.Notify();
    } else if (request.picture == "2") {
      second_asked.Notify();
      third_made.WaitForNotification();
    }
    return Cat();
  });
  const RunResult run = Run({"--concurrency", "2", File("1", "1"), File("2", "2"), (folder_ / "3").string()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Classify, GoesOnAfterAFailureAndReturnsTheFirstOne) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<Classification> {
    if (request.picture == "busy") return absl::ResourceExhaustedError("the queue is full");
    if (request.picture == "bad") return absl::InvalidArgumentError("not a picture");
    return Cat();
  });
  const RunResult run = Run({File("a", "busy"), File("b", "bad"), File("c", "good")});
  EXPECT_EQ(run.exit_code, 72);
  EXPECT_THAT(run.err, HasSubstr("/a: the queue is full (RESOURCE_EXHAUSTED)\n"));
  EXPECT_THAT(run.err, HasSubstr("/b: not a picture (INVALID_ARGUMENT)\n"));
  EXPECT_THAT(run.out, HasSubstr("tabby"));
}

TEST_F(Classify, ReportsAMissingFileWithoutAnAddress) {
  const RunResult run = Run({"/nonesuch.jpg", File("c", "good")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "saccade: /nonesuch.jpg cannot be opened: No such file or directory\n");
  EXPECT_THAT(run.out, HasSubstr("tabby"));
}

TEST_F(Classify, AdvisesWhereToFindTheModels) {
  daemon_.FailWith(absl::NotFoundError("no model 'sanet'"));
  const RunResult run = Run({"-"}, "x");
  EXPECT_EQ(run.exit_code, 69);
  EXPECT_EQ(run.err,
            "saccade: standard input: no model 'sanet' (NOT_FOUND): saccade models lists what is served\n");
}

TEST_F(Classify, ReadsStandardInputOnce) {
  const RunResult run = Run({"-", "-"}, "x");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("given more than once"));
}

TEST_F(Classify, DrawsTheAnswerUnderThePicture) {
  AnswerAbout(400, 200);
  const std::string path = File("cat.png", Encoded(PlainPicture(400, 200)));
  const std::string output = folder_ / "made" / "here";

  const RunResult run = Run({path, "-o", output});

  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "wrote " + output + "/cat.classify.overlay.png\n");
  const cv::Mat overlay = ReadPng(output + "/cat.classify.overlay.png");
  ASSERT_EQ(overlay.cols, 400);
  ASSERT_GT(overlay.rows, 200 + 2 * 20);
  EXPECT_EQ(overlay.at<cv::Vec3b>(199, 399), cv::Vec3b(90, 120, 60));
  // The first bar covers three quarters of its row.
  const int y = 200 + 8 + 4 + 1;
  EXPECT_EQ(overlay.at<cv::Vec3b>(y, 250), overlay.at<cv::Vec3b>(y, 12));
  EXPECT_NE(overlay.at<cv::Vec3b>(y, 330), overlay.at<cv::Vec3b>(y, 12));
}

TEST_F(Classify, PrintsTheAnswerIfTheOverlayCannotBeDrawn) {
  const RunResult run = Run({"-", "-o", folder_}, "no picture");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("standard input: no output: not a readable picture: it starts with the bytes"));
  EXPECT_THAT(run.out, HasSubstr("tabby"));
}

TEST_F(Classify, RefusesToDrawOnAPictureOfAnotherSize) {
  const RunResult run = Run({"-", "-o", folder_}, Encoded(PlainPicture(40, 20)));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("the picture is 40x20 pixels large; the daemon reports 640x480"));
}

TEST_F(Classify, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) -> absl::StatusOr<AnyAnswer> { return Detections(); });
  const RunResult run = Run({"-"}, "x");
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("answered with detections instead of a classification"));
}

TEST_F(Classify, RejectsAnOutputThatIsAFile) {
  const RunResult run = Run({"-", "-o", File("file", "x")}, "x");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("expected a folder"));
}

TEST_F(Classify, IsQuietWhenAsked) {
  AnswerAbout(40, 20);
  const RunResult run = Run({"-", "-q", "-o", folder_}, Encoded(PlainPicture(40, 20)));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
}

}  // namespace
}  // namespace saccade::client
