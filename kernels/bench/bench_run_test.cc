#include "kernels/bench/bench_run.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "kernels/bench/bench_memory.h"

namespace saccade::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kElements = 1000;

at::Tensor Filled(double value) { return at::full({kElements}, value, at::kFloat); }

BenchCase CaseOf(std::vector<BenchCandidate> candidates, double min_bytes = 0) {
  BenchCase bench;
  bench.op = "op";
  bench.variant = "variant";
  bench.shape = "shape";
  bench.min_bytes = min_bytes;
  bench.make = [candidates] { return BenchInputs{at::full({kElements}, 2.0, at::kDouble), candidates}; };
  return bench;
}

constexpr BenchOptions kShort = {.seconds_per_candidate = 1e-3};

// The candidate appends one letter per turn to `calls`, however many calls a turn has.
BenchCandidate Recorded(const std::string& name, char letter, std::string* calls) {
  return {name, [=] {
            if (calls->empty() || calls->back() != letter) calls->push_back(letter);
            return Filled(2);
          }};
}

TEST(BenchRunTest, CandidatesTakeTurns) {
  std::string calls;
  const BenchOutcome outcome =
      RunBenchmark(CaseOf({Recorded("eager", 'e', &calls), Recorded("saccade", 's', &calls)}), kShort);
  EXPECT_EQ(outcome.wrong, "");
  ASSERT_GE(outcome.result.rounds, 7);
  std::string rounds;
  for (int i = 0; i < outcome.result.rounds; ++i) rounds += "es";
  EXPECT_THAT(calls, HasSubstr(rounds));
}

TEST(BenchRunTest, ReportsEveryCandidateAndTheCopy) {
  const BenchCandidate with_workspace = {"eager", [] {
                                           at::empty({4 * kElements}, at::kFloat).zero_();
                                           return Filled(2);
                                         }};
  const BenchOutcome outcome =
      RunBenchmark(CaseOf({with_workspace, {"saccade", [] { return Filled(2); }}}, 1e5), kShort);
  const std::vector<CandidateResult>& candidates = outcome.result.candidates;
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].name, "eager");
  EXPECT_EQ(candidates[1].name, "saccade");
  EXPECT_EQ(candidates[1].ratio, 1);
  EXPECT_GT(candidates[0].seconds, 0);
  // The workspace is freed before the result is allocated, so the peak is 16,000 bytes, of which 4,000 are
  // subtracted for the result.
  EXPECT_EQ(candidates[0].peak_bytes, 12000);
  EXPECT_EQ(candidates[1].peak_bytes, 0);
  EXPECT_GT(outcome.result.copy_seconds, 0);
}

TEST(BenchRunTest, AWrongResultIsNotTimed) {
  int calls = 0;
  const auto wrong = [&](at::Tensor result) {
    calls = 0;
    return RunBenchmark(CaseOf({{"saccade",
                                 [&calls, result] {
                                   ++calls;
                                   return result;
                                 }}}),
                        kShort)
        .wrong;
  };
  EXPECT_THAT(wrong(Filled(2.00001)), HasSubstr("saccade is off by 5"));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(wrong(Filled(std::numeric_limits<double>::quiet_NaN())), HasSubstr("expected at most 1e-06"));
  EXPECT_THAT(wrong(at::zeros({2}, at::kFloat)), HasSubstr("saccade has shape [2]; expected [1000]"));
  EXPECT_EQ(calls, 1);
}

TEST(BenchRunTest, APeersRoundingIsItsOwnAffair) {
  EXPECT_EQ(RunBenchmark(CaseOf({{"eager", [] { return Filled(2.00001); }}}), kShort).wrong, "");
  EXPECT_THAT(RunBenchmark(CaseOf({{"eager", [] { return Filled(2.001); }}}), kShort).wrong,
              HasSubstr("eager is off by"));
}

TEST(BenchRunTest, PeakAllocationIsTheMostAtOnce) {
  EXPECT_EQ(PeakAllocation([] {
              for (int i = 0; i < 3; ++i) at::empty({100}, at::kByte);
            }),
            100);
  EXPECT_EQ(PeakAllocation([] {
              const at::Tensor a = at::empty({100}, at::kByte);
              at::empty({200}, at::kByte);
            }),
            300);
}

TEST(BenchRunTest, RegisteredCasesComeByOperator) {
  static const auto add = [](const char* op, std::vector<BenchCase>* cases) {
    cases->emplace_back();
    cases->back().op = op;
  };
  const BenchRegistration later([](std::vector<BenchCase>* cases) { add("b", cases); });
  const BenchRegistration sooner([](std::vector<BenchCase>* cases) { add("a", cases); });
  std::vector<std::string> ops;
  for (const BenchCase& each : RegisteredBenchmarks()) ops.push_back(each.op);
  EXPECT_THAT(ops, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace saccade::kernels
