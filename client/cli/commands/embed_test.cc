#include "client/cli/commands/embed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "client/cli/testing/command_test.h"

namespace saccade::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Embedding Vector(std::vector<float> values) {
  Embedding answer;
  answer.model = "net";
  answer.version = 2;
  answer.batch_size = 1;
  answer.picture_width = 4;
  answer.picture_height = 3;
  answer.values = std::move(values);
  return answer;
}

class Embed : public CommandTest {
 protected:
  Embed() {
    daemon_.SetPredict([](const FakeRequest&) { return Vector({3, -4, 0.125f}); });
  }

  RunResult Run(const std::vector<std::string>& arguments, const std::string& input = "x") {
    return RunCommand("embed", arguments, input);
  }
};

TEST_F(Embed, PrintsTheNumberTheLengthAndTheFirstValues) {
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("-  4x3  net 2  "));
  EXPECT_EQ(Lines(run), "  3 values of length 5.002: 3 -4 0.125\n");
  daemon_.SetPredict([](const FakeRequest&) { return Vector({0, 1, 0, 0, 0, 0, 0}); });
  EXPECT_EQ(Lines(Run({"-"})), "  7 values of length 1: 0 1 0 0 0 0 ...\n");
}

TEST_F(Embed, WritesAllValuesAsJson) {
  const RunResult run = Run({"-", File("b.png", "b"), "--format", "jsonl"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto first = nlohmann::json::parse(run.out.substr(0, run.out.find('\n')));
  EXPECT_EQ(first["file"], "-");
  EXPECT_EQ(first["embedding"], nlohmann::json::parse("[3, -4, 0.125]"));
  EXPECT_EQ(nlohmann::json::parse(Run({"-", "--json"}).out)["results"][0]["embedding"],
            nlohmann::json::parse("[3, -4, 0.125]"));
}

TEST_F(Embed, ReportsAnAnswerOfAnotherTask) {
  daemon_.SetPredict([](const FakeRequest&) { return Classification(); });
  const RunResult run = Run({"-"});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_THAT(run.err, HasSubstr("answered with a classification instead of an embedding"));
}

}  // namespace
}  // namespace saccade::client
