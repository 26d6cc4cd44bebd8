#include "kernels/bench/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace saccade::kernels {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CaseResult Example() {
  return {.op = "ea",
          .variant = "module",
          .shape = "fpn1",
          .madds = 5.28e9,
          .min_bytes = 220e6,
          .min_workspace_bytes = 1e6,
          .rounds = 9,
          .candidates = {{"eager", 0.3, 4, 55e6}, {"saccade", 0.075, 1, 2e6}},
          .copy_seconds = 0.025};
}

TEST(BenchReportTest, MedianTakesTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 2}), 2);
  EXPECT_EQ(Median({9, 1, 2, 4}), 3);
}

// The machine is half as fast in two of five rounds: the ratio of the separate medians would be 1.5.
TEST(BenchReportTest, RatioIsTakenRoundByRound) {
  EXPECT_EQ(MedianRatio({2, 4, 4, 2, 3}, {1, 2, 2, 1, 2}), 2);
}

TEST(BenchReportTest, ThreeDigitsAndAUnit) {
  EXPECT_EQ(SecondsText(0.00000123), "1.23 us");
  EXPECT_EQ(SecondsText(0.0339), "33.9 ms");
  EXPECT_EQ(SecondsText(0.9999), "1.00 s");
  EXPECT_EQ(SecondsText(305), "305 s");
  EXPECT_EQ(SecondsText(12345), "12345 s");
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(99960), "100 kB");
  EXPECT_EQ(BytesText(9.66e12), "9.66 TB");
  EXPECT_EQ(CountText(5.035e9), "5.04 G");
}

TEST(BenchReportTest, MarkdownHasARowPerCandidateAndASectionPerOperator) {
  CaseResult other = Example();
  other.op = "sao";
  other.madds = other.min_workspace_bytes = other.copy_seconds = 0;
  other.candidates = {{"saccade", 0.001, 1, 0}};
  std::ostringstream out;
  WriteMarkdown({{"threads", "2"}}, {Example(), Example(), other}, out);
  EXPECT_THAT(out.str(), HasSubstr("- threads: 2\n"));
  EXPECT_THAT(out.str(), HasSubstr("| ea/module/fpn1/eager | 300 ms | 4.00x | 5.28 G | 17.6 | 55.0 MB | "
                                   "55.00x | 12.00x |\n"));
  EXPECT_THAT(out.str(), HasSubstr("| sao/module/fpn1/saccade | 1.00 ms | 1.00x |  |  | 0 B |  |  |\n"));
  const size_t first = out.str().find("## ea");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(out.str().find("## ea", first + 1), std::string::npos);
  EXPECT_THAT(out.str(), HasSubstr("\n## sao\n"));
}

TEST(BenchReportTest, JsonIsGoogleBenchmarks) {
  std::ostringstream out;
  WriteJson({{"CPU", "a \"fast\" one"}}, {Example()}, out);
  EXPECT_THAT(out.str(), HasSubstr(R"("context": {"CPU": "a \"fast\" one"})"));
  EXPECT_THAT(out.str(), HasSubstr(R"({"name": "ea/module/fpn1/saccade", )"));
  EXPECT_THAT(out.str(), HasSubstr(R"("real_time": 75, "time_unit": "ms", "ratio_to_saccade": 1,)"));
  EXPECT_THAT(out.str(), Not(HasSubstr(",\n  ]")));
}

TEST(BenchReportTest, ACaseOnATerminal) {
  std::ostringstream out;
  PrintCase(Example(), out);
  EXPECT_THAT(out.str(),
              HasSubstr("ea/module/fpn1: 9 rounds, 5.28 G MAdds, must move 220 MB (a copy: 25.0 ms)\n"));
  EXPECT_THAT(out.str(), HasSubstr("saccade"));
}

}  // namespace
}  // namespace saccade::kernels
