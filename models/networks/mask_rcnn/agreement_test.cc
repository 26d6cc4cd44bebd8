#include "models/networks/mask_rcnn/agreement.h"

#include <gtest/gtest.h>

#include <limits>

namespace saccade::models {
namespace {

Detection DetectionAt(float x, float score, int64_t label, float mask = 0.5F) {
  Detection detection;
  detection.x_min = x;
  detection.x_max = x + 10;
  detection.y_max = 10;
  detection.score = score;
  detection.label = label;
  detection.mask = {mask, mask};
  return detection;
}

TaskResult Of(const std::vector<Detection>& items) { return Detections{.items = items}; }

TEST(AgreementTest, CountsDetectionsOfBothThatHaveAPartner) {
  const TaskResult two = Of({DetectionAt(0, 0.9F, 1), DetectionAt(100, 0.8F, 2)});
  EXPECT_EQ(Agreement(two, two, 1e-3), 1);
  EXPECT_EQ(Agreement(two, Of({DetectionAt(1, 0.9F, 1), DetectionAt(200, 0.8F, 2)}), 1e-3), 0.5);
  EXPECT_EQ(Agreement(two, Of({}), 1e-3), 0);
  EXPECT_EQ(Agreement(Of({}), Of({}), 1e-3), 1);
}

TEST(AgreementTest, LabelsScoresAndMasksCount) {
  const TaskResult one = Of({DetectionAt(0, 0.9F, 1)});
  EXPECT_EQ(Agreement(one, Of({DetectionAt(0, 0.9F, 2)}), 0.05), 0);
  EXPECT_EQ(Agreement(one, Of({DetectionAt(0, 0.8F, 1)}), 0.05), 0);
  EXPECT_EQ(Agreement(one, Of({DetectionAt(0, 0.88F, 1)}), 0.05), 1);
  EXPECT_EQ(Agreement(one, Of({DetectionAt(0, 0.9F, 1, 0.7F)}), 0.05), 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Agreement(one, Of({DetectionAt(nan, 0.9F, 1)}), 0.05), 0);
  EXPECT_EQ(Agreement(one, Of({DetectionAt(0, 0.9F, 1, nan)}), 0.05), 0);
}

TEST(AgreementTest, FailuresAgreeWithEqualOnes) {
  const TaskResult failure = Failure{"a"};
  EXPECT_EQ(Agreement(failure, Failure{"a"}, 1), 1);
  EXPECT_EQ(Agreement(failure, Failure{"b"}, 1), 0);
  EXPECT_EQ(Agreement(failure, Of({}), 1), 0);
}

}  // namespace
}  // namespace saccade::models
