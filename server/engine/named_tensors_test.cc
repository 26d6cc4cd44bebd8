#include "server/engine/named_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Sent(const std::string& name, std::vector<int64_t> shape, DataType type = DataType::kFp32) {
  return {.name = name, .type = type, .shape = std::move(shape), .data = {}};
}

class NamedTensorsTest : public ::testing::Test {
 protected:
  NamedTensorsTest() {
    settings_.name = "m";
    settings_.inputs = {{.name = "a", .type = DataType::kFp32, .dims = {3, -1}},
                        {.name = "b", .type = DataType::kInt32, .dims = {1}}};
  }

  std::string Why(std::vector<Tensor> tensors, int64_t rows = 2) const {
    const NamedTensors sent = {.tensors = std::move(tensors), .rows = rows};
    return std::string(CheckTensors(sent, settings_).message());
  }

  int64_t Bucket(int64_t rows, int64_t width) const {
    return BucketOf(
        {.tensors = {Sent("a", {rows, 3, width}), Sent("b", {rows, 1}, DataType::kInt32)}, .rows = rows},
        settings_);
  }

  const Tensor a_ = Sent("a", {2, 3, 5});
  const Tensor b_ = Sent("b", {2, 1}, DataType::kInt32);
  ModelSettings settings_;
};

TEST_F(NamedTensorsTest, EveryInputOnceInAnyOrder) {
  EXPECT_EQ(Why({a_, b_}), "");
  EXPECT_EQ(Why({b_, a_}), "");
  EXPECT_EQ(Why({a_}), "inputs: 'b' is missing; model 'm' takes 'a' (FP32 [-1,3,-1]), 'b' (INT32 [-1,1])");
  EXPECT_THAT(Why({a_, b_, Sent("c\n", {2})}), HasSubstr("no input is named 'c\\n'; model 'm' takes 'a'"));
  EXPECT_THAT(Why({a_, b_, a_}), HasSubstr("'a' is given more than once"));
}

TEST_F(NamedTensorsTest, TextsAreCountedBeforeTheyAreSplit) {
  settings_.inputs = {{.name = "t", .type = DataType::kBytes, .dims = {-1}}};
  EXPECT_THAT(Why({Sent("t", {1, (1 << 18) + 1}, DataType::kBytes)}, 1),
              HasSubstr("more than 262144 elements of BYTES"));
}

TEST_F(NamedTensorsTest, OptionalInputsMayBeMissing) {
  settings_.inputs[0].optional = true;
  EXPECT_EQ(Why({b_}), "");
  EXPECT_EQ(Why({a_, b_}), "");
  EXPECT_THAT(Why({a_}), HasSubstr("'b' is missing"));
  EXPECT_EQ(Why({b_, Sent("a", {3, 3, 5})}),
            "input 'a': the batch is 3, but that of input 'b' is 2; all inputs of a request must have "
            "the same batch size");
  EXPECT_THAT(Why({Sent("a", {2, 4, 5}), b_}), HasSubstr("expected [-1,3,-1]"));
  const NamedTensors without = {.tensors = {b_}, .rows = 2};
  EXPECT_EQ(FindTensor(without, settings_.inputs[0]), nullptr);
  EXPECT_EQ(FindTensor(without, settings_.inputs[1]), &without.tensors[0]);
  for (const int64_t width : {0, 1, 5}) EXPECT_NE(BucketOf(without, settings_), Bucket(2, width));
}

TEST_F(NamedTensorsTest, TypesAndShapesAreTheConfigurations) {
  EXPECT_EQ(Why({a_, Sent("b", {2, 1})}), "input 'b': the datatype is FP32, expected INT32");
  EXPECT_EQ(Why({Sent("a", {2, 4, 5}), b_}),
            "input 'a': the shape is [2,4,5], expected [-1,3,-1] (the batch dimension first)");
  EXPECT_THAT(Why({Sent("a", {3, 5}), b_}), HasSubstr("the shape is [3,5], expected [-1,3,-1]"));
  EXPECT_THAT(Why({Sent("a", {}), b_}), HasSubstr("the shape is [], expected [-1,3,-1]"));
  EXPECT_EQ(Why({a_, Sent("b", {3, 1}, DataType::kInt32)}),
            "input 'b': the batch is 3, but that of input 'a' is 2; all inputs of a request must have "
            "the same batch size");
}

TEST_F(NamedTensorsTest, TextsThatAreCutOffAreTheClientsError) {
  settings_.inputs = {{.name = "t", .type = DataType::kBytes, .dims = {1}}};
  Tensor texts = Sent("t", {2, 1}, DataType::kBytes);
  const std::string bytes("\1\0\0\0a\2\0\0\0b", 10);
  texts.data = BytePieces(bytes);
  EXPECT_THAT(Why({texts}), HasSubstr("input 't': "));
  texts.data = BytePieces(std::string_view(bytes).substr(0, 5));
  EXPECT_THAT(Why({texts}), HasSubstr("input 't': ")) << "one element is missing";
  texts.shape = {1, 1};
  EXPECT_EQ(Why({texts}, 1), "");
}

TEST_F(NamedTensorsTest, WithoutABatchShapesAreWhole) {
  settings_.has_batch_dimension = false;
  EXPECT_EQ(Why({Sent("a", {3, 7}), Sent("b", {1}, DataType::kInt32)}, 1), "");
  EXPECT_EQ(Why({a_, b_}, 1), "input 'a': the shape is [2,3,5], expected [3,-1]");
}

TEST_F(NamedTensorsTest, BucketsAreShapesBeyondTheBatch) {
  EXPECT_EQ(Bucket(1, 5), Bucket(4, 5));
  EXPECT_NE(Bucket(1, 5), Bucket(1, 6));
}

TEST(ReshapeTest, FreeExtentsKeepTheirOrder) {
  const TensorSpec spec = {.name = "a", .dims = {4, -1, 6, -1}, .reshape = std::vector<int64_t>{-1, 24, -1}};
  EXPECT_THAT(ToProgram(spec, true, {2, 4, 5, 6, 7}), ElementsAre(2, 5, 24, 7));
  EXPECT_THAT(ToClient(spec, true, {2, 5, 24, 7}), ElementsAre(2, 4, 5, 6, 7));
  EXPECT_THAT(ToProgram(spec, false, {4, 5, 6, 7}), ElementsAre(5, 24, 7));
}

TEST(ReshapeTest, ToAScalarAndNotAtAll) {
  const TensorSpec scalar = {.name = "a", .dims = {1}, .reshape = std::vector<int64_t>{}};
  EXPECT_THAT(ToProgram(scalar, true, {3, 1}), ElementsAre(3));
  EXPECT_THAT(ToClient(scalar, true, {3}), ElementsAre(3, 1));
  const TensorSpec plain = {.name = "a", .dims = {-1}};
  EXPECT_THAT(ToProgram(plain, true, {3, 9}), ElementsAre(3, 9));
}

}  // namespace
}  // namespace saccade::server
