#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "client/cli/output/bar.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/json.h"
#include "client/cli/output/output_file.h"
#include "client/cli/output/pfm.h"
#include "client/cli/output/table.h"
#include "client/cpp/status.h"

namespace saccade::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Bar, GrowsInEighthsOrInHashes) {
  EXPECT_EQ(Bar(0, 8, true), "");
  EXPECT_EQ(Bar(1.0 / 64, 8, true), "▏");
  EXPECT_EQ(Bar(0.5, 8, true), "████");
  EXPECT_EQ(Bar(1, 8, true), "████████");
  EXPECT_EQ(Bar(0.5, 8, false), "####");
}

TEST(Bar, StaysInItsColumnsForInvalidFractions) {
  EXPECT_EQ(Bar(2, 3, false), "###");
  EXPECT_EQ(Bar(-1, 3, false), "");
  EXPECT_EQ(Bar(std::nan(""), 3, true), "");
}

TEST(Printable, ReplacesTerminalSequences) {
  EXPECT_EQ(Printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "??31m");
  EXPECT_EQ(Printable("Köter 犬"), "Köter 犬");
}

TEST(WithThousands, InsertsCommas) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1000), "1,000");
  EXPECT_EQ(WithThousands(3449408), "3,449,408");
  EXPECT_EQ(WithThousands(-123456), "-123,456");
}

TEST(PrintTable, AlignsByCharactersNotBytes) {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  PrintTable(console, {{"NAME"}, {"N", true}, {"END"}}, {{"Köter", "1", "x"}, {"a", "1000", ""}});
  EXPECT_EQ(out.str(),
            "NAME      N  END\n"
            "Köter     1  x\n"
            "a      1000\n");
}

TEST(Shortest, IsTheShortestDecimalOfTheFloat) {
  EXPECT_EQ(Shortest(0.1f), 0.1);
  EXPECT_EQ(Shortest(0.8132f), 0.8132);
  EXPECT_EQ(Shortest(1.0f), 1.0);
}

TEST(ExitCode, IsSixtyFourPlusTheCanonicalCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 67);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 69);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 72);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 78);
}

TEST(Explain, AdvisesWhenToRetry) {
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(busy, "1500");
  const FailureText explanation = TextOf(busy, "host:1");
  EXPECT_EQ(explanation.what, "the queue is full (RESOURCE_EXHAUSTED)");
  EXPECT_EQ(explanation.advice, "try again in 1.5s");
}

TEST(Explain, NamesTheCommandOfTheModelsTask) {
  const absl::Status other = absl::InvalidArgumentError(
      "classification: model 'm' is for detection; omit these options, or set 'detection'");
  EXPECT_EQ(TextOf(other, "host:1").advice, "ask it with saccade detect");
  const absl::Status depth = absl::InvalidArgumentError(
      "detection: model 'm' is for depth; omit these options, or set 'stereo_options'");
  EXPECT_EQ(TextOf(depth, "host:1").advice, "ask it with saccade depth");
  const absl::Status embedding =
      absl::InvalidArgumentError("detection: model 'm' makes embeddings, which have no options; omit them");
  EXPECT_EQ(TextOf(embedding, "host:1").advice, "ask it with saccade embed");
  EXPECT_EQ(TextOf(absl::InvalidArgumentError("model 'm' is for detection"), "host:1").advice, "");
}

TEST(Explain, IgnoresRetryHintsThatAreNoNumbers) {
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(busy, "-1");
  EXPECT_EQ(TextOf(busy, "host:1").advice, "");
}

TEST(OutputStems, NeverCollide) {
  EXPECT_THAT(OutputStems("out", {"a/cat.jpg", "b/cat.png", "-", "cat"}),
              ElementsAre("out/cat", "out/cat-2", "out/stdin", "out/cat-3"));
}

TEST(OutputStems, TakeTheNamesOfFolders) {
  EXPECT_THAT(OutputStems("out", {"a/clip/", "b/clip", "a/./other/."}),
              ElementsAre("out/clip", "out/clip-2", "out/other"));
}

TEST(WriteFile, ReturnsTheReasonOfAFailure) {
  EXPECT_EQ(WriteFile("/nonesuch/x", {"bytes"}).message(),
            "could not write /nonesuch/x: No such file or directory");
}

TEST(ToPfm, HasTheBottomRowFirst) {
  const std::string file = ToPfm(2, 3, {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(file.substr(0, 12), "Pf\n2 3\n-1.0\n");
  float values[6] = {};
  ASSERT_EQ(file.size(), 12 + sizeof(values));
  std::memcpy(values, file.data() + 12, sizeof(values));
  EXPECT_THAT(values, ElementsAre(5, 6, 3, 4, 1, 2));
}

TEST(PrintRows, LeavesEmptyColumnsOut) {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  PrintRows(console, {true, false, false}, {{"1", "", "x"}, {"10", "", ""}});
  EXPECT_EQ(out.str(), "   1  x\n  10\n");
}

}  // namespace
}  // namespace saccade::client
