// Tests what is computed between maps and results against brute force in double precision.
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/networks/rc3d/action_head.h"
#include "models/networks/rc3d/proposals.h"
#include "models/networks/rc3d/regions.h"
#include "models/networks/rc3d/suppression.h"

namespace saccade::models {
namespace {

struct Exact {
  double start, end, score;
  int64_t label;
};

Exact MovedExactly(double centre, double length, double move, double growth) {
  const double moved = move * length + centre;
  const double grown = std::exp(std::min(growth, std::log(62.5))) * length;
  return {moved - grown / 2, moved + grown / 2, 0, 0};
}

double Overlap(const Exact& a, const Exact& b) {
  const double shared = std::max(0.0, std::min(a.end, b.end) - std::max(a.start, b.start));
  return shared / (a.end - a.start + b.end - b.start - shared);
}

// Returns the best, best first, without those that overlap a better one of their label too much.
std::vector<Exact> BestExactly(std::vector<Exact> all, double threshold, size_t max) {
  std::stable_sort(all.begin(), all.end(), [](const Exact& a, const Exact& b) { return a.score > b.score; });
  std::vector<Exact> best;
  for (const Exact& one : all) {
    if (best.size() == max) break;
    const bool again = std::any_of(best.begin(), best.end(), [&](const Exact& better) {
      return better.label == one.label && Overlap(one, better) > threshold;
    });
    if (!again) best.push_back(one);
  }
  return best;
}

TEST(Segments, AreAnchoredMovedAndClipped) {
  EXPECT_EQ(Anchor(0, 1), (Segment{0, 8}));
  EXPECT_EQ(Anchor(3, 2), (Segment{20, 36}));
  EXPECT_EQ(Anchor(0, 4), (Segment{-12, 20}));
  const std::vector<float> still = {0, 0};
  EXPECT_EQ(Moved({20, 36}, still.data(), kActionSegmentWeights), (Segment{20, 36}));
  const std::vector<float> offsets = {5, 5 * std::log(2.0F)};
  const Segment moved = Moved({20, 36}, offsets.data(), kActionSegmentWeights);
  EXPECT_NEAR(moved.start, 28 + 8 - 16, 1e-4);
  EXPECT_NEAR(moved.end, 28 + 8 + 16, 1e-4);
  // Growth is bounded.
  const std::vector<float> huge = {0, 1e30F};
  EXPECT_NEAR(Moved({0, 16}, huge.data(), kProposalSegmentWeights).length(), 1000, 0.01);
  EXPECT_EQ(Clipped({-3, 50}, 40), (Segment{0, 40}));
  EXPECT_EQ(Clipped({50, 60}, 40), (Segment{40, 40}));
}

TEST(Propose, AgreesWithBruteForce) {
  at::manual_seed(1);
  constexpr int64_t kFrames = 150;  // of 160 in the map
  constexpr int64_t kSteps = 20;
  Rc3dOptions options;
  options.proposals = 60;
  const auto anchors = static_cast<int64_t>(options.anchors.size());
  const ProposalNumbers numbers = {at::randn({kSteps, anchors}), at::randn({kSteps, 2 * anchors})};
  std::vector<Exact> all;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t i = 0; i < anchors; ++i) {
      const auto offset = [&](int64_t part) { return numbers.offsets[step][2 * i + part].item<double>(); };
      Exact one = MovedExactly(8.0 * static_cast<double>(step) + 4,
                               8.0 * static_cast<double>(options.anchors[static_cast<size_t>(i)]), offset(0),
                               offset(1));
      one.start = std::clamp(one.start, 0.0, double{kFrames});
      one.end = std::clamp(one.end, 0.0, double{kFrames});
      one.score = numbers.logits[step][i].item<double>();
      if (one.end - one.start >= 1) all.push_back(one);
    }
  }
  const std::vector<Exact> expected = BestExactly(all, 0.7, 60);
  ASSERT_LT(expected.size(), all.size());
  const std::vector<Segment> got = Propose(numbers, kFrames, options);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i].start, expected[i].start, 1e-3) << i;
    EXPECT_NEAR(got[i].end, expected[i].end, 1e-3) << i;
  }
}

// All anchors are moved beyond the clip.
TEST(Propose, MayFindNothing) {
  Rc3dOptions options;
  options.anchors = {2};
  EXPECT_TRUE(Propose({at::zeros({4, 1}), at::zeros({4, 2}).add(100)}, 32, options).empty());
}

TEST(Suppressed, TakesEqualsInOrderAndLabelsApart) {
  Scored all;
  all.Add({0, 10}, 0.5F, 1);
  all.Add({0, 10}, 0.5F, 1);
  all.Add({0, 10}, 0.4F, 2);
  all.Add({5, 15}, 0.9F, 1);  // overlaps by a third
  const Scored best = Suppressed(all, 0.4, 10);
  EXPECT_EQ(best.segments, (std::vector<Segment>{{5, 15}, {0, 10}, {0, 10}}));
  EXPECT_EQ(best.labels, (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(Suppressed(all, 0.3, 10).segments.size(), 2U);
  EXPECT_EQ(Suppressed(all, 0.4, 1).segments.size(), 1U);
  EXPECT_TRUE(Suppressed({}, 0.4, 10).segments.empty());
}

TEST(PoolSegments, AgreesWithBruteForce) {
  at::manual_seed(1);
  constexpr int64_t kChannels = 5;
  const std::vector<Segment> segments = {{0, 80},  {0, 1},   {7.9F, 8.1F},   {16, 24},     {17, 23},
                                         {79, 80}, {80, 80}, {3.5F, 61.25F}, {8, 16.001F}, {0, 79.9F}};
  for (const auto& [steps, height, width] : {std::tuple<int64_t, int64_t, int64_t>{10, 7, 7}, {10, 1, 3}}) {
    const at::Tensor map =
        at::randn({1, kChannels, steps, height, width}).contiguous(at::MemoryFormat::ChannelsLast3d);
    const at::Tensor got = PoolSegments(map, segments);
    ASSERT_EQ(got.sizes(), (std::vector<int64_t>{10, kChannels, 4, 2, 2}));
    EXPECT_TRUE(got.is_contiguous(at::MemoryFormat::ChannelsLast3d));
    const auto bin = [](int64_t index, int64_t bins, int64_t count) {
      return std::pair{
          static_cast<int64_t>(std::floor(static_cast<double>(index * count) / static_cast<double>(bins))),
          static_cast<int64_t>(
              std::ceil(static_cast<double>((index + 1) * count) / static_cast<double>(bins)))};
    };
    for (size_t i = 0; i < segments.size(); ++i) {
      const auto first = std::min(static_cast<int64_t>(std::floor(double{segments[i].start} / 8)), steps - 1);
      const auto last = std::max(static_cast<int64_t>(std::ceil(double{segments[i].end} / 8)), first + 1);
      for (int64_t t = 0; t < 4; ++t) {
        for (int64_t cell = 0; cell < 4; ++cell) {
          const auto [t0, t1] = bin(t, 4, last - first);
          const auto [y0, y1] = bin(cell / 2, 2, height);
          const auto [x0, x1] = bin(cell % 2, 2, width);
          ASSERT_GT(t1, t0);
          const at::Tensor expected =
              map[0].slice(1, first + t0, first + t1).slice(2, y0, y1).slice(3, x0, x1).flatten(1).amax(1);
          EXPECT_TRUE(got[static_cast<int64_t>(i)]
                          .select(1, t)
                          .select(1, cell / 2)
                          .select(1, cell % 2)
                          .equal(expected))
              << i << ' ' << t << ' ' << cell;
        }
      }
    }
  }
}

TEST(FindActions, AgreesWithBruteForce) {
  at::manual_seed(2);
  constexpr int64_t kFrames = 90;
  constexpr int64_t kProposals = 50;
  Rc3dOptions options;
  options.classes = 4;
  options.detections = 12;
  options.score_threshold = 0.3;
  const ActionNumbers numbers = {at::randn({kProposals, 4}).mul(2).softmax(1),
                                 at::randn({kProposals, 8}).mul(2)};
  std::vector<Segment> proposals;
  std::vector<Exact> all;
  for (int64_t i = 0; i < kProposals; ++i) {
    const auto start = static_cast<float>(i % 17) * 5;
    proposals.push_back({start, start + 6 + static_cast<float>(i % 5) * 4});
    for (int64_t label = 1; label < 4; ++label) {
      const auto offset = [&](int64_t part) { return numbers.offsets[i][2 * label + part].item<double>(); };
      const Segment& from = proposals.back();
      Exact one = MovedExactly((double{from.start} + double{from.end}) / 2, from.length(), offset(0) / 10,
                               offset(1) / 5);
      one.start = std::clamp(one.start, 0.0, double{kFrames});
      one.end = std::clamp(one.end, 0.0, double{kFrames});
      one.score = numbers.scores[i][label].item<double>();
      one.label = label;
      if (one.score > 0.3 && one.end - one.start >= 1) all.push_back(one);
    }
  }
  const std::vector<Exact> expected = BestExactly(all, 0.4, 12);
  ASSERT_EQ(expected.size(), 12U);
  const Actions got = FindActions(numbers, proposals, kFrames, options);
  EXPECT_EQ(got.frames, kFrames);
  ASSERT_EQ(got.items.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got.items[i].label, expected[i].label) << i;
    EXPECT_NEAR(got.items[i].score, expected[i].score, 1e-6) << i;
    EXPECT_NEAR(got.items[i].start, expected[i].start, 1e-3) << i;
    EXPECT_NEAR(got.items[i].end, expected[i].end, 1e-3) << i;
  }
}

}  // namespace
}  // namespace saccade::models
