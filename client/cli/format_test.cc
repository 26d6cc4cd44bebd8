#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "client/cli/failure.h"
#include "client/cli/json.h"
#include "client/cli/outcome.h"
#include "client/cli/overlay_path.h"
#include "client/cli/picture_file.h"
#include "client/cli/table.h"
#include "client/status.h"

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

TEST(Bar, StaysInItsColumnsWhateverTheDaemonAnswers) {
  EXPECT_EQ(Bar(2, 3, false), "###");
  EXPECT_EQ(Bar(-1, 3, false), "");
  EXPECT_EQ(Bar(std::nan(""), 3, true), "");
}

TEST(Printable, TakesTheTeethOutOfTerminalSequences) {
  EXPECT_EQ(Printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "??31m");
  EXPECT_EQ(Printable("Köter 犬"), "Köter 犬");
}

TEST(WithThousands, SetsCommas) {
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

TEST(Shortest, IsWhatTheFloatWasMeantToBe) {
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

TEST(Explain, SaysWhenToTryAgain) {
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(busy, "1500");
  const Explanation explanation = Explain(busy, "host:1");
  EXPECT_EQ(explanation.what, "the queue is full (RESOURCE_EXHAUSTED)");
  EXPECT_EQ(explanation.advice, "try again in 1.5s");
}

TEST(Explain, TreatsAHintThatIsNoNumberAsNone) {
  absl::Status busy = absl::ResourceExhaustedError("the queue is full");
  SetRetryAfter(busy, "-1");
  EXPECT_EQ(Explain(busy, "host:1").advice, "");
}

TEST(OverlayPaths, NeverCollide) {
  EXPECT_THAT(OverlayPaths("out", {"a/cat.jpg", "b/cat.png", "-", "cat"}),
              ElementsAre("out/cat.overlay.png", "out/cat-2.overlay.png", "out/stdin.overlay.png",
                          "out/cat-3.overlay.png"));
}

TEST(ReadPicture, ReadsAPipeToItsEndButNotBeyondTheLimit) {
  std::istringstream fits(std::string(100000, 'x'));
  EXPECT_EQ(ReadPicture("-", fits, 100000)->size(), 100000u);
  std::istringstream large(std::string(100001, 'x'));
  EXPECT_THAT(std::string(ReadPicture("-", large, 100000).status().message()),
              HasSubstr("--max-message-bytes"));
}

TEST(ReadPicture, SaysWhatIsWrongWithTheFile) {
  std::istringstream empty;
  EXPECT_THAT(std::string(ReadPicture("-", empty, 10).status().message()), HasSubstr("is empty"));
  EXPECT_THAT(std::string(ReadPicture("/nonesuch", empty, 10).status().message()),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(std::string(ReadPicture("/", empty, 10).status().message()), HasSubstr("is a directory"));
}

}  // namespace
}  // namespace saccade::client
