#include "models/tasks/disagreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace saccade::models {
namespace {

Detection Box(float x, float side, float score, int64_t label, std::vector<float> mask = {}) {
  return {.x_min = x,
          .y_min = 0,
          .x_max = x + side,
          .y_max = side,
          .score = score,
          .label = label,
          .mask = std::move(mask)};
}

TEST(DisagreementTest, ClassesDifferByTheirProbabilities) {
  const auto of = [](double p) {
    return Classification{{static_cast<float>(std::log(p)), static_cast<float>(std::log(1 - p))}};
  };
  EXPECT_NEAR(Disagreement(of(0.7), of(0.7)), 0, 1e-12);
  EXPECT_NEAR(Disagreement(of(0.7), of(0.6)), 0.1, 1e-6);
  EXPECT_NEAR(Disagreement(of(0.7), of(0.1)), 0.6, 1e-6);
  // A constant added to all logits does not change the probabilities; large ones do not overflow.
  EXPECT_NEAR(Disagreement(Classification{{1000, 1001}}, Classification{{0, 1}}), 0, 1e-6);
  EXPECT_EQ(Disagreement(Classification{{1, 2}}, Classification{{1, 2, 3}}), 1);
}

TEST(DisagreementTest, DetectionsAreMatchedByClassAndOverlap) {
  const Detections expected{.items = {Box(0, 10, 0.8F, 1), Box(100, 10, 0.6F, 2)}};
  EXPECT_EQ(Disagreement(expected, expected), 0);
  // In another order, moved, and with other scores.
  EXPECT_EQ(Disagreement(expected, Detections{.items = {Box(100, 10, 0.9F, 2), Box(2, 10, 0.55F, 1)}}), 0);
  // An IoU of 6 / 14 is none.
  EXPECT_EQ(
      Disagreement(Detections{.items = {Box(0, 10, 0.5F, 1)}}, Detections{.items = {Box(4, 10, 0.5F, 1)}}),
      1);
  // One of the three certain ones of both sides has no counterpart.
  EXPECT_NEAR(Disagreement(expected, Detections{.items = {Box(0, 10, 0.8F, 1)}}), 1.0 / 3, 1e-9);
  // Another class: both sides have one that the other lacks.
  EXPECT_NEAR(Disagreement(expected, Detections{.items = {Box(0, 10, 0.8F, 3), Box(100, 10, 0.6F, 2)}}), 0.5,
              1e-9);
  EXPECT_EQ(Disagreement(Detections{}, Detections{}), 0);
  EXPECT_EQ(Disagreement(Detections{}, expected), 1);
}

TEST(DisagreementTest, FindingsThatAreNotCertainAreNoEvidence) {
  EXPECT_FALSE(HasCertainFinding(Detections{}));
  EXPECT_FALSE(HasCertainFinding(Detections{.items = {Box(0, 10, 0.49F, 1)}}));
  EXPECT_TRUE(HasCertainFinding(Detections{.items = {Box(0, 10, 0.1F, 1), Box(0, 10, 0.5F, 1)}}));
  EXPECT_FALSE(HasCertainFinding(Actions{}));
  EXPECT_TRUE(HasCertainFinding(Classification{{1, 2}}));
}

TEST(DisagreementTest, AScoreThatCrossesTheBoundIsNoLoss) {
  const auto of = [](float score) { return Detections{.items = {Box(0, 10, score, 1)}}; };
  EXPECT_EQ(Disagreement(of(0.501F), of(0.499F)), 0);
  EXPECT_EQ(Disagreement(of(0.499F), of(0.501F)), 0);
  EXPECT_EQ(Disagreement(of(0.6F), of(0.2F)), 1);
  // What neither is certain of does not count.
  EXPECT_EQ(Disagreement(of(0.4F), Detections{}), 0);
}

TEST(DisagreementTest, AMaskMustMatchToo) {
  const Detections whole{.items = {Box(0, 10, 1, 1, {1, 1, 1, 1})}};
  EXPECT_EQ(Disagreement(whole, Detections{.items = {Box(0, 10, 1, 1, {1, 1, 0.4F, 0.6F})}}), 0);
  EXPECT_EQ(Disagreement(whole, Detections{.items = {Box(0, 10, 1, 1, {1, 0, 0, 0})}}), 1);
  EXPECT_EQ(Disagreement(whole, Detections{.items = {Box(0, 10, 1, 1, {1, 1})}}), 1);
}

TEST(DisagreementTest, EachBoxIsMatchedOnce) {
  const Detections one{.items = {Box(0, 10, 0.5F, 1)}};
  const Detections twice{.items = {Box(0, 10, 0.5F, 1), Box(0, 10, 0.5F, 1)}};
  EXPECT_NEAR(Disagreement(one, twice), 1.0 / 3, 1e-9);
  EXPECT_NEAR(Disagreement(twice, one), 1.0 / 3, 1e-9);
}

TEST(DisagreementTest, ActionsOverlapInTime) {
  const auto at = [](float start) { return Actions{.items = {{start, start + 10, 0.9F, 1}}, .frames = 100}; };
  EXPECT_EQ(Disagreement(at(0), at(3)), 0);  // an IoU of 7 / 13
  EXPECT_EQ(Disagreement(at(0), at(4)), 1);  // an IoU of 6 / 14
}

TEST(DisagreementTest, PixelsAreCounted) {
  EXPECT_EQ(Disagreement(Segmentation{1, 4, {1, 2, 3, 4}, {}}, Segmentation{1, 4, {1, 2, 0, 4}, {}}), 0.25);
  EXPECT_EQ(Disagreement(Disparity{1, 4, {1, 2, 3, 4}}, Disparity{1, 4, {1.9F, 2, 3, 6}}), 0.25);
  EXPECT_EQ(Disagreement(Disparity{1, 4, {1, 2, 3, 4}}, Disparity{1, 2, {1, 2}}), 1);
}

TEST(DisagreementTest, VoxelsDifferRelativeToTheirSpread) {
  const Restoration expected{1, 1, 4, {-1, 1, -1, 1}};
  EXPECT_EQ(Disagreement(expected, expected), 0);
  EXPECT_NEAR(Disagreement(expected, Restoration{1, 1, 4, {-1.1F, 1.1F, -1.1F, 1.1F}}), 0.1, 1e-6);
  EXPECT_EQ(Disagreement(Restoration{1, 1, 2, {3, 3}}, Restoration{1, 1, 2, {3, 3.1F}}), 1);
}

TEST(DisagreementTest, AFailureAgreesOnlyWithAFailure) {
  EXPECT_EQ(Disagreement(Failure{"a"}, Failure{"b"}), 0);
  EXPECT_EQ(Disagreement(Failure{"a"}, Detections{}), 1);
  EXPECT_EQ(Disagreement(Detections{}, Failure{"a"}), 1);
  EXPECT_EQ(Disagreement(Detections{}, Classification{{1}}), 1);
}

}  // namespace
}  // namespace saccade::models
