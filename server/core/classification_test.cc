#include "server/core/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "absl/types/span.h"
#include "server/core/bytes_elements.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;

template <typename T>
Tensor Of(DataType type, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {.name = "scores",
          .type = type,
          .shape = std::move(shape),
          .data = BytePieces({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)})};
}

std::vector<std::string> Texts(const Tensor& tensor) {
  const auto split = SplitBytes(tensor.data, *ElementCount(tensor.shape));
  EXPECT_TRUE(split.ok()) << split.status();
  return {split->elements.begin(), split->elements.end()};
}

TEST(ClassificationTest, OfEachRowTheLargest) {
  const std::vector<float> values = {0.25F, 3, -1, 7, 7, 0};
  const auto classified = Classify(Of(DataType::kFp32, {2, 3}, values), 2, {"cat", "dog"}, /*batched=*/true);
  ASSERT_TRUE(classified.ok()) << classified.status();
  EXPECT_EQ(classified->type, DataType::kBytes);
  EXPECT_THAT(classified->shape, ElementsAre(2, 2));
  EXPECT_THAT(Texts(*classified),
              ElementsAre("3.000000:1:dog", "0.250000:0:cat", "7.000000:0:cat", "7.000000:1:dog"));
}

TEST(ClassificationTest, NoMoreThanThereAre) {
  const std::vector<int64_t> values = {-5, 9};
  const auto classified =
      Classify(Of(DataType::kInt64, {2}, values), int64_t{1} << 60, {}, /*batched=*/false);
  ASSERT_TRUE(classified.ok()) << classified.status();
  EXPECT_THAT(classified->shape, ElementsAre(2));
  EXPECT_THAT(Texts(*classified), ElementsAre("9:1", "-5:0"));
}

TEST(ClassificationTest, AsManyBytesAsTheShapeSays) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const int64_t row : {3, 5}) {
    // In two pieces, which are copied to be read.
    Tensor tensor = Of<float>(DataType::kFp32, {2, row}, {});
    tensor.data = BytePieces(absl::MakeConstSpan(values).subspan(0, 2));
    tensor.data.Add({reinterpret_cast<const char*>(values.data() + 2), 6 * sizeof(float)});
    const auto classified = Classify(tensor, 2, {}, /*batched=*/true);
    EXPECT_EQ(classified.status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(std::string(classified.status().message()),
              "output 'scores' holds 32 bytes; FP32 of shape [2," + std::to_string(row) + "] is " +
                  std::to_string(8 * row));
  }
}

TEST(ClassificationTest, AnEmptyLabelIsLeftOut) {
  const std::vector<uint8_t> values = {65, 66};
  const auto classified = Classify(Of(DataType::kUint8, {2}, values), 2, {"cat", ""}, /*batched=*/false);
  ASSERT_TRUE(classified.ok()) << classified.status();
  EXPECT_THAT(Texts(*classified), ElementsAre("66:1", "65:0:cat"));
}

TEST(ClassificationTest, WhatIsNoNumberComesLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {nan, 1, nan, 2};
  const auto classified = Classify(Of(DataType::kFp64, {1, 4}, values), 4, {}, /*batched=*/true);
  ASSERT_TRUE(classified.ok()) << classified.status();
  EXPECT_THAT(Texts(*classified), ElementsAre("2.000000:3", "1.000000:1", "nan:0", "nan:2"));
}

TEST(ClassificationTest, NoRowsAreNoTexts) {
  const auto classified = Classify(Of<float>(DataType::kFp32, {0, 3}, {}), 2, {}, /*batched=*/true);
  ASSERT_TRUE(classified.ok()) << classified.status();
  EXPECT_EQ(*ElementCount(classified->shape), 0);
}

template <typename T>
void ExpectLargestFirst(DataType type) {
  constexpr T kMax = std::numeric_limits<T>::max();
  constexpr T kMin = std::numeric_limits<T>::min();
  const std::vector<T> values = {kMin, 1, kMax};
  const auto classified = Classify(Of(type, {1, 3}, values), 3, {"least", "one", "most"}, /*batched=*/true);
  ASSERT_TRUE(classified.ok()) << classified.status();
  std::vector<std::string> labels;
  for (const std::string& text : Texts(*classified)) labels.push_back(text.substr(text.rfind(':') + 1));
  EXPECT_THAT(labels, ElementsAre("most", "one", "least")) << NameOf(type);
}

TEST(ClassificationTest, IntegersOfEveryTypeAreInTheirOrder) {
  ExpectLargestFirst<uint8_t>(DataType::kUint8);
  ExpectLargestFirst<uint16_t>(DataType::kUint16);
  ExpectLargestFirst<uint32_t>(DataType::kUint32);
  ExpectLargestFirst<uint64_t>(DataType::kUint64);
  ExpectLargestFirst<int8_t>(DataType::kInt8);
  ExpectLargestFirst<int16_t>(DataType::kInt16);
  ExpectLargestFirst<int32_t>(DataType::kInt32);
}

TEST(ClassificationTest, ASingleNumberIsOneRow) {
  const std::vector<float> values = {4};
  const auto classified = Classify(Of(DataType::kFp32, {}, values), 3, {}, /*batched=*/true);
  ASSERT_TRUE(classified.ok()) << classified.status();
  EXPECT_THAT(Texts(*classified), ElementsAre("4.000000:0"));
}

TEST(ClassificationTest, SomeOfARowAreTheFirstOfAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    // With equal values, and some that are no numbers.
    std::vector<float> values(1 + random() % 40);
    for (float& value : values)
      value = random() % 9 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(random() % 10);
    const auto count = static_cast<int64_t>(values.size());
    const auto all = Classify(Of(DataType::kFp32, {1, count}, values), count, {}, true);
    ASSERT_TRUE(all.ok()) << all.status();
    std::vector<std::string> first = Texts(*all);
    const auto wanted = static_cast<int64_t>(random() % values.size());
    first.resize(wanted);
    const auto some = Classify(Of(DataType::kFp32, {1, count}, values), wanted, {}, true);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_EQ(Texts(*some), first);
  }
}

TEST(ClassificationTest, MoreValuesThanATensorOfTextsHasAreRefused) {
  const std::vector<uint8_t> values(2 * kMaxClassified);
  const Tensor two_rows = Of(DataType::kUint8, {2, kMaxClassified}, values);
  EXPECT_TRUE(Classify(two_rows, 10, {}, true).ok());
  const absl::Status refused = Classify(two_rows, kMaxClassified, {}, true).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("asks for 262144 values in each of 2 rows"));
}

TEST(ClassificationTest, TypesWithoutAnOrderAreRefused) {
  const std::vector<uint16_t> values = {1};
  EXPECT_EQ(Classify(Of(DataType::kFp16, {1, 1}, values), 1, {}, true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace saccade::server
