#include "server/shadow/compare.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

ComparedAnswer Of(models::TaskResult result) { return {.results = {std::move(result)}, .outputs = {}}; }

template <typename T>
ComparedAnswer TensorOf(DataType type, const std::vector<T>& values, const std::string& name = "out") {
  auto bytes = std::make_shared<std::string>(values.size() * sizeof(T), '\0');
  std::memcpy(bytes->data(), values.data(), bytes->size());
  return {.results = {},
          .outputs = {{.name = name,
                       .type = type,
                       .shape = {static_cast<int64_t>(values.size())},
                       .data = BytePieces(*bytes, bytes)}}};
}

models::Detection Box(float left, float right, float score, int64_t label) {
  return {.x_min = left, .y_min = 0, .x_max = right, .y_max = 10, .score = score, .label = label, .mask = {}};
}

models::Detections Boxes(std::vector<models::Detection> items) { return {.items = std::move(items)}; }

double DifferenceOf(const ComparedAnswer& one, const ComparedAnswer& other) {
  return CompareAnswers(one, other).difference;
}

TEST(CompareTest, EqualAnswersAreEqualAndAgree) {
  const std::vector<ComparedAnswer> answers = {
      Of(models::Classification{.logits = {1, 2}}),
      Of(Boxes({Box(0, 10, 0.5, 1)})),
      Of(models::Segmentation{.height = 1, .width = 2, .labels = {0, 1}, .areas = {1, 1}}),
      Of(models::Disparity{.height = 1, .width = 2, .values = {1, 2}}),
      Of(models::Actions{.items = {{.start = 1, .end = 4, .score = 0.5, .label = 2}}, .frames = 8}),
      Of(models::Restoration{.depth = 1, .height = 1, .width = 2, .values = {1, 2}}),
      Of(models::Embedding{.values = {1, 2}}),
      TensorOf<float>(DataType::kFp32, {1, NAN})};
  for (const ComparedAnswer& answer : answers) {
    const AnswerComparison comparison = CompareAnswers(answer, answer);
    EXPECT_TRUE(comparison.equal) << comparison.task;
    EXPECT_EQ(comparison.difference, 0) << comparison.task;
    EXPECT_TRUE(Agrees(comparison, std::nullopt)) << comparison.task;
    EXPECT_TRUE(Agrees(comparison, 0)) << comparison.task;
  }
}

TEST(CompareTest, ClassificationsAgreeByTheirBestClass) {
  // Probabilities 0.25, 0.75 and 0.1, 0.9.
  const auto one = Of(models::Classification{.logits = {0, std::log(3.0F)}});
  const auto surer = Of(models::Classification{.logits = {0, std::log(9.0F)}});
  const auto other = Of(models::Classification{.logits = {std::log(3.0F), 0}});
  const AnswerComparison same_class = CompareAnswers(one, surer);
  EXPECT_FALSE(same_class.equal);
  EXPECT_NEAR(same_class.difference, 0.15, 1e-6);
  EXPECT_TRUE(Agrees(same_class, std::nullopt));
  EXPECT_FALSE(Agrees(same_class, 0.1)) << "a tolerance asks for the probabilities";
  const AnswerComparison other_class = CompareAnswers(one, other);
  EXPECT_NEAR(other_class.difference, 0.5, 1e-6);
  EXPECT_FALSE(Agrees(other_class, std::nullopt));
  EXPECT_TRUE(std::isinf(DifferenceOf(one, Of(models::Classification{.logits = {1, 2, 3}}))));
}

TEST(CompareTest, IndependentClassesHaveProbabilitiesOfTheirOwn) {
  const auto of = [](float logit) {
    return Of(models::Classification{.logits = {logit}, .function = models::LogitFunction::kSigmoid});
  };
  EXPECT_NEAR(DifferenceOf(of(0), of(std::log(3.0F))), 0.25, 1e-6);
}

// One network leaves its softmax to the daemon, and the other one ends in it.
TEST(CompareTest, ClassificationsAreComparedByProbabilityWhereverItComesFrom) {
  const auto softmax = Of(models::Classification{.logits = {1, 1 + std::log(3.0F)}});
  const auto of = [](float first, float second) {
    return Of(models::Classification{.logits = {std::log(first), std::log(second)},
                                     .function = models::LogitFunction::kExp});
  };
  const AnswerComparison same = CompareAnswers(softmax, of(0.25F, 0.75F));
  EXPECT_NEAR(same.difference, 0, 1e-6);
  EXPECT_TRUE(Agrees(same, std::nullopt));
  EXPECT_TRUE(Agrees(same, 0.001));
  EXPECT_FALSE(same.equal) << "the logits are others";
  EXPECT_NEAR(DifferenceOf(softmax, of(0.25F, 0.5F)), 0.25, 1e-6);
  const auto sigmoid =
      Of(models::Classification{.logits = {0, 0}, .function = models::LogitFunction::kSigmoid});
  const auto exp = Of(models::Classification{.logits = {0, 0}, .function = models::LogitFunction::kExp});
  EXPECT_FALSE(CompareAnswers(sigmoid, exp).equal) << "0.5 and 1";
  EXPECT_NEAR(DifferenceOf(sigmoid, exp), 0.5, 1e-6);
}

TEST(CompareTest, TheSignOfZeroIsABit) {
  const AnswerComparison comparison =
      CompareAnswers(Of(models::Disparity{.height = 1, .width = 1, .values = {0.0F}}),
                     Of(models::Disparity{.height = 1, .width = 1, .values = {-0.0F}}));
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.difference, 0);
}

TEST(CompareTest, DetectionsAreMatchedByClassAndOverlap) {
  const auto one = Of(Boxes({Box(0, 10, 0.9F, 1), Box(20, 30, 0.4F, 2)}));
  EXPECT_NEAR(DifferenceOf(one, Of(Boxes({Box(0, 9, 0.9F, 1), Box(20, 30, 0.4F, 2)}))), 0.1, 1e-6);
  EXPECT_NEAR(DifferenceOf(one, Of(Boxes({Box(0, 10, 0.6F, 1), Box(20, 30, 0.4F, 2)}))), 0.3, 1e-6);
  EXPECT_NEAR(DifferenceOf(one, Of(Boxes({Box(0, 10, 0.9F, 1)}))), 0.4, 1e-6) << "one is gone";
  EXPECT_NEAR(DifferenceOf(one, Of(Boxes({Box(0, 10, 0.9F, 1), Box(20, 30, 0.4F, 3)}))), 0.4, 1e-6)
      << "another class";
  // The order counts for equality alone.
  const AnswerComparison reordered =
      CompareAnswers(one, Of(Boxes({Box(20, 30, 0.4F, 2), Box(0, 10, 0.9F, 1)})));
  EXPECT_FALSE(reordered.equal);
  EXPECT_EQ(reordered.difference, 0);
  EXPECT_FALSE(Agrees(CompareAnswers(one, Of(Boxes({}))), std::nullopt));
  EXPECT_TRUE(Agrees(CompareAnswers(Of(Boxes({})), Of(Boxes({}))), std::nullopt));
}

TEST(CompareTest, EachDetectionHasOnePartner) {
  const auto twice = Of(Boxes({Box(0, 10, 0.9F, 1), Box(0, 10, 0.8F, 1)}));
  EXPECT_NEAR(DifferenceOf(twice, Of(Boxes({Box(0, 10, 0.9F, 1)}))), 0.8, 1e-6);
}

TEST(CompareTest, ActionsAreMatchedInTime) {
  const auto of = [](float end) {
    return Of(models::Actions{.items = {{.start = 0, .end = end, .score = 0.5, .label = 1}}, .frames = 16});
  };
  EXPECT_NEAR(DifferenceOf(of(10), of(8)), 0.2, 1e-6);
  EXPECT_NEAR(DifferenceOf(of(10), of(2)), 0.5, 1e-6) << "less than half: not the same action";
}

TEST(CompareTest, MapsAreComparedByPixel) {
  const auto labels = [](std::vector<uint8_t> values) {
    return Of(models::Segmentation{.height = 2, .width = 2, .labels = std::move(values), .areas = {}});
  };
  EXPECT_EQ(DifferenceOf(labels({0, 1, 2, 3}), labels({0, 1, 2, 4})), 0.25);
  EXPECT_TRUE(std::isinf(DifferenceOf(labels({0, 1, 2, 3}), labels({0}))));
  const auto disparity = [](std::vector<float> values) {
    return Of(models::Disparity{.height = 1, .width = 2, .values = std::move(values)});
  };
  EXPECT_EQ(DifferenceOf(disparity({1, 2}), disparity({2, 4})), 1.5);
  const auto depth = [&](std::vector<float> values) {
    ComparedAnswer answer = disparity(std::move(values));
    answer.is_depth = true;
    return answer;
  };
  // The unit does not count: these are the same maps in metres and in thousandths of them.
  EXPECT_NEAR(DifferenceOf(depth({0, 0.02F}), depth({0.002F, 0.02F})), 0.05, 1e-6);
  EXPECT_NEAR(DifferenceOf(depth({0, 20}), depth({2, 20})), 0.05, 1e-6);
  EXPECT_FALSE(Agrees(CompareAnswers(depth({0, 0.02F}), depth({0.002F, 0.02F})), std::nullopt));
  EXPECT_TRUE(Agrees(CompareAnswers(depth({0, 20}), depth({0.2F, 20})), std::nullopt));
  const auto volume = [](std::vector<float> values) {
    return Of(models::Restoration{.depth = 1, .height = 1, .width = 2, .values = std::move(values)});
  };
  EXPECT_EQ(DifferenceOf(volume({0, 10}), volume({1, 10})), 0.05);
}

TEST(CompareTest, EmbeddingsAreComparedByAngle) {
  const auto of = [](std::vector<float> values) {
    return Of(models::Embedding{.values = std::move(values)});
  };
  EXPECT_NEAR(DifferenceOf(of({1, 0}), of({0, 1})), 1, 1e-9);
  EXPECT_NEAR(DifferenceOf(of({1, 0}), of({2, 0})), 0, 1e-9) << "their lengths do not count";
  EXPECT_TRUE(std::isinf(DifferenceOf(of({1, 0}), of({0, 0}))));
}

TEST(CompareTest, TensorsAreComparedInTheirOwnType) {
  EXPECT_EQ(DifferenceOf(TensorOf<float>(DataType::kFp32, {1, 4}), TensorOf<float>(DataType::kFp32, {1, 3})),
            0.25);
  EXPECT_EQ(
      DifferenceOf(TensorOf<int8_t>(DataType::kInt8, {-4, 1}), TensorOf<int8_t>(DataType::kInt8, {-2, 1})),
      0.5);
  // 2 and 1.
  EXPECT_EQ(DifferenceOf(TensorOf<uint16_t>(DataType::kFp16, {0x4000}),
                         TensorOf<uint16_t>(DataType::kFp16, {0x3C00})),
            0.5);
  EXPECT_EQ(DifferenceOf(TensorOf<uint16_t>(DataType::kBf16, {0x4000}),
                         TensorOf<uint16_t>(DataType::kBf16, {0x3F80})),
            0.5);
  EXPECT_TRUE(std::isinf(
      DifferenceOf(TensorOf<float>(DataType::kFp32, {1}), TensorOf<float>(DataType::kFp32, {NAN}))));
  EXPECT_TRUE(std::isinf(
      DifferenceOf(TensorOf<float>(DataType::kFp32, {1}), TensorOf<int32_t>(DataType::kInt32, {1}))));
  EXPECT_TRUE(std::isinf(
      DifferenceOf(TensorOf<float>(DataType::kFp32, {1}), TensorOf<float>(DataType::kFp32, {1}, "other"))));
  EXPECT_TRUE(std::isinf(
      DifferenceOf(TensorOf<uint8_t>(DataType::kBool, {1}), TensorOf<uint8_t>(DataType::kBool, {0}))));
}

TEST(CompareTest, TheWorstItemCounts) {
  const models::Disparity one = {.height = 1, .width = 1, .values = {1}};
  const models::Disparity far = {.height = 1, .width = 1, .values = {5}};
  const AnswerComparison comparison =
      CompareAnswers({.results = {one, one}, .outputs = {}}, {.results = {one, far}, .outputs = {}});
  EXPECT_FALSE(comparison.equal);
  EXPECT_EQ(comparison.difference, 4);
  EXPECT_FALSE(Agrees(comparison, std::nullopt));
  EXPECT_TRUE(std::isinf(DifferenceOf({.results = {one, one}, .outputs = {}}, Of(one))));
}

TEST(CompareTest, ResultsOfDifferentTasksAreFarApart) {
  const AnswerComparison comparison = CompareAnswers(Of(models::Embedding{.values = {1}}), Of(Boxes({})));
  EXPECT_FALSE(comparison.equal);
  EXPECT_TRUE(std::isinf(comparison.difference));
  EXPECT_FALSE(Agrees(comparison, 1e300));
}

}  // namespace
}  // namespace saccade::server
