#include "client/cli/commands/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "client/cli/drawing/testing/pictures.h"
#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Bench : public CommandTest {
 protected:
  Bench() { ServeTask("classification"); }

  void ServeTask(const std::string& task) {
    Model model;
    model.name = "net";
    model.version = 1;
    model.state = ModelState::kReady;
    model.task = task;
    daemon_.SetModels({model});
    daemon_.SetPredict([](const FakeRequest&) {
      Classification answer;
      answer.timings.infer = absl::Milliseconds(1);
      answer.timings.total = absl::Milliseconds(2);
      answer.batch_size = 2;
      return answer;
    });
  }

  RunResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--seconds", "0.2"});
    return RunCommand("bench", arguments);
  }
};

TEST_F(Bench, PrintsLatenciesByStage) {
  const RunResult run = Run({File("cat.png", "picture"), "--concurrency", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("net  "));
  EXPECT_THAT(run.out, HasSubstr("(2 at once)"));
  EXPECT_THAT(run.out, ContainsRegex("infer +1\\.00 +1\\.00"));
  EXPECT_THAT(run.out, HasSubstr("batches: 2.0 pictures in the mean: 2 (100%)"));
}

TEST_F(Bench, SendsAllFilesInTurn) {
  std::atomic<int> cats = 0;
  std::atomic<int> dogs = 0;
  daemon_.SetPredict([&](const FakeRequest& request) {
    ++(request.picture == "cat" ? cats : dogs);
    return Classification();
  });
  const RunResult run = Run({File("cat.png", "cat"), File("dog.png", "dog"), "--rate", "200", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(cats, 0);
  EXPECT_LE(std::abs(cats - dogs), 1);
  const auto document = nlohmann::json::parse(run.out);
  EXPECT_EQ(document["answers"], cats + dogs);
  EXPECT_EQ(document["requests"], cats + dogs);
  EXPECT_EQ(document["rate"], 200);
  EXPECT_TRUE(document["failures"].empty());
}

TEST_F(Bench, ExpandsFoldersAndPatterns) {
  std::map<std::string, int> asked;
  absl::Mutex mutex;
  daemon_.SetPredict([&](const FakeRequest& request) {
    absl::MutexLock lock(&mutex);
    ++asked[request.picture];
    return Classification();
  });
  std::filesystem::create_directory(folder_ / "more");
  File("more/cat.png", "cat");
  File("more/dog.jpg", "dog");
  File("more/notes.txt", "notes");
  File("owl.png", "owl");
  const RunResult run = Run({folder_ / "more", folder_ / "o*.png", "--rate", "200"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  ASSERT_EQ(asked.size(), 3u);
  // The files are sent in turn: none is more than one request ahead.
  for (const char* picture : {"cat", "dog", "owl"}) EXPECT_LE(asked["cat"] - asked[picture], 1) << picture;
  std::filesystem::create_directory(folder_ / "empty");
  const RunResult none = Run({folder_ / "empty"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("has no JPEG, PNG, WebP, TIFF or BMP files in it"));
}

TEST_F(Bench, CountsFailuresByCodeAndEndsWithOneOfThem) {
  std::atomic<int> asked = 0;
  daemon_.SetPredict([&](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    const int number = asked++;
    if (number == 3) return absl::UnavailableError("gone");
    if (number == 1 || number == 2) return absl::DeadlineExceededError("late");
    return Classification();
  });
  // There is at least one request of each of the four, however slow the machine is.
  const RunResult run = Run({File("cat.png", "cat"), "--concurrency", "4", "--json"});
  EXPECT_THAT(run.exit_code, AnyOf(68, 78));
  EXPECT_THAT(run.err, HasSubstr(" requests failed: 2 DEADLINE_EXCEEDED, 1 UNAVAILABLE\n"));
  const auto document = nlohmann::json::parse(run.out);
  EXPECT_EQ(document["failures"]["DEADLINE_EXCEEDED"]["requests"], 2);
  EXPECT_EQ(document["failures"]["UNAVAILABLE"]["requests"], 1);
}

TEST_F(Bench, SaysWhatItCouldNotSend) {
  // One request at a time takes more than a microsecond.
  const std::vector<std::string> arguments = {File("cat.png", "cat"), "--rate", "1000000", "--concurrency",
                                              "1"};
  const RunResult text = Run(arguments);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(" (1000000 were due)"));
  EXPECT_THAT(text.out, ContainsRegex("not sent: [0-9,]+ of [0-9,]+ requests that were due within 0\\.2 s; "
                                      "asked rate 1000000 a second, reached rate [0-9.]+; "));
  auto with_json = arguments;
  with_json.emplace_back("--json");
  const RunResult json = Run(with_json);
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto document = nlohmann::json::parse(json.out);
  EXPECT_GT(document["not_sent"].get<int64_t>(), 0);
  EXPECT_EQ(document["requests"], document["answers"]);
  EXPECT_DOUBLE_EQ(document["sent_per_second"].get<double>(), document["requests"].get<double>() / 0.2);
}

TEST_F(Bench, TakesNumbersOnly) {
  const std::string cat = File("cat.png", "cat");
  for (const std::string flag : {"--seconds", "--rate", "--timeout"}) {
    const RunResult run = RunCommand("bench", {cat, flag, "nan"});
    EXPECT_EQ(run.exit_code, 2) << flag;
    EXPECT_THAT(run.err, HasSubstr(flag)) << flag;
  }
}

TEST_F(Bench, CountsRejections) {
  std::atomic<int> asked = 0;
  daemon_.SetPredict([&](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
    if (asked++ % 2 == 1) return absl::ResourceExhaustedError("the queue is full");
    return Classification();
  });
  const RunResult run = Run({File("cat.png", "cat"), "--rate", "200"});
  EXPECT_EQ(run.exit_code, 72);
  EXPECT_THAT(run.out, HasSubstr("RESOURCE_EXHAUSTED: "));
  EXPECT_THAT(run.out, HasSubstr("requests; the first: the queue is full"));
}

TEST_F(Bench, FailsWithoutAnyAnswer) {
  daemon_.SetPredict([](const FakeRequest&) { return absl::InvalidArgumentError("no picture"); });
  const RunResult run = Run({File("cat.png", "cat")});
  EXPECT_EQ(run.exit_code, 67);
  EXPECT_THAT(run.err, HasSubstr("no picture"));
  EXPECT_EQ(run.out, "");
}

TEST_F(Bench, SendsPairs) {
  ServeTask("stereo");
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.picture != "left" || request.right != "right") return absl::InvalidArgumentError("no pair");
    return Disparity();
  });
  const std::string left = File("left.png", "left");
  EXPECT_EQ(Run({left, File("right.png", "right")}).exit_code, 0);
  const RunResult odd = Run({left});
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_THAT(odd.err, HasSubstr("pairs of files, left and right in turn; the number of files is odd: 1"));
}

TEST_F(Bench, AsksForDepthAndEmbeddings) {
  for (const std::string task : {"depth", "embedding"}) {
    ServeTask(task);
    daemon_.SetPredict([task](const FakeRequest&) -> absl::StatusOr<AnyAnswer> {
      return task == "depth" ? AnyAnswer(DepthMap()) : AnyAnswer(Embedding());
    });
    const RunResult run = Run({File("cat.png", "cat"), "--json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(nlohmann::json::parse(run.out)["failures"].empty()) << run.out;
  }
}

TEST_F(Bench, DrawsAPlot) {
  const std::string plot = folder_ / "plot.png";
  const RunResult run = Run({File("cat.png", "cat"), "--plot", plot});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("wrote "));
  EXPECT_EQ(ReadPng(plot).cols, 1200);
  EXPECT_EQ(Run({File("cat.png", "cat"), "--plot", folder_ / "no" / "plot.png"}).exit_code, 1);
}

TEST_F(Bench, LeavesOutFilesThatCannotBeSent) {
  const std::string empty = File("empty.png", "");
  const RunResult run = Run({File("cat.png", "cat"), empty});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr(empty + " is empty; expected an input of the model; left out"));
  EXPECT_THAT(run.out, HasSubstr("answers of"));
  const RunResult none = Run({empty});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no file can be sent"));
  ServeTask("stereo");
  std::atomic<int> others = 0;
  daemon_.SetPredict([&](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.picture != "left" || request.right != "right") ++others;
    return Disparity();
  });
  const std::string left = File("left.png", "left");
  EXPECT_EQ(Run({left, empty, left, File("right.png", "right")}).exit_code, 0);
  EXPECT_EQ(others, 0) << "a pair with an empty file is left out as a whole";
}

TEST_F(Bench, NamesTheFileThatTheDaemonRejects) {
  daemon_.SetPredict([](const FakeRequest& request) -> absl::StatusOr<AnyAnswer> {
    if (request.picture == "dog") return absl::InvalidArgumentError("no picture");
    return Classification();
  });
  const std::string dog = File("dog.png", "dog");
  EXPECT_THAT(Run({File("cat.png", "cat"), dog}).out, HasSubstr("the first: " + dog + ": no picture"));
  EXPECT_THAT(Run({dog}).err, HasSubstr(dog + ": no picture"));
}

TEST_F(Bench, SaysThatAModelIsNotReady) {
  Model model;
  model.name = "net";
  model.state = ModelState::kLoading;
  daemon_.SetModels({model});
  const RunResult loading = Run({File("cat.png", "cat")});
  EXPECT_EQ(loading.exit_code, 1);
  EXPECT_THAT(loading.err, HasSubstr("model 'net' is loading; only a ready model can be measured"));
  model.state = ModelState::kUnavailable;
  model.reason = "no weights";
  daemon_.SetModels({model});
  EXPECT_THAT(Run({File("cat.png", "cat")}).err, HasSubstr("model 'net' is unavailable: no weights; only"));
}

TEST_F(Bench, ReportsErrors) {
  EXPECT_THAT(Run({folder_ / "missing.png"}).err, HasSubstr("missing.png"));
  ServeTask("tensors");
  EXPECT_THAT(Run({File("cat.png", "cat")}).err, HasSubstr("is for tensors"));
  daemon_.SetModels({});
  EXPECT_EQ(Run({File("cat.png", "cat")}).exit_code, 69);
}

}  // namespace
}  // namespace saccade::client
