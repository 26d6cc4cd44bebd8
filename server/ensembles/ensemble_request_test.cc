#include "server/ensembles/ensemble_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "server/ensembles/testing/ensembles.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

ModelSettings Batched() {
  ModelSettings settings =
      EnsembleOf({Spec("a", {3, -1}), Spec("b", {1}, DataType::kBytes)}, {Spec("out", {2})}, {});
  settings.has_batch_dimension = true;
  settings.batching.max_batch_size = 4;
  return settings;
}

TensorCall Call() {
  TensorCall call;
  call.inputs.push_back({.name = "a", .type = DataType::kFp32, .shape = {2, 3, 7}, .data = {}});
  call.inputs.push_back({.name = "b", .type = DataType::kBytes, .shape = {2, 1}, .data = {}});
  return call;
}

TEST(EnsembleRequestTest, WhatFitsIsTaken) {
  TensorCall call = Call();
  EXPECT_TRUE(CheckRequest(call, Batched()).ok()) << CheckRequest(call, Batched());
  EXPECT_EQ(ItemsOf(call, Batched()), 2);
  call.outputs.push_back({.name = "out"});
  EXPECT_TRUE(CheckRequest(call, Batched()).ok());
}

TEST(EnsembleRequestTest, WithoutABatchDimensionItIsOneItem) {
  ModelSettings settings = EnsembleOf({Spec("a", {-1, 2})}, {Spec("out")}, {});
  TensorCall call;
  call.inputs.push_back({.name = "a", .type = DataType::kFp32, .shape = {9, 2}, .data = {}});
  EXPECT_TRUE(CheckRequest(call, settings).ok()) << CheckRequest(call, settings);
  EXPECT_EQ(ItemsOf(call, settings), 1);
}

TEST(EnsembleRequestTest, WhatIsWrongIsNamed) {
  const struct {
    std::function<void(TensorCall&)> change;
    const char* message;
  } cases[] = {
      {[](TensorCall& call) { call.inputs[0].name = std::string("z"); },
       "inputs: no input is named 'z'; the ensemble's are 'a', 'b'"},
      {[](TensorCall& call) { call.inputs[0].type = DataType::kInt32; },
       "input 'a': is INT32 [2,3,7], expected FP32 [-1,3,-1]"},
      {[](TensorCall& call) { call.inputs[0].shape = {2, 4, 7}; },
       "input 'a': is FP32 [2,4,7], expected FP32 [-1,3,-1]"},
      {[](TensorCall& call) { call.inputs[0].shape = {2, 3}; },
       "input 'a': is FP32 [2,3], expected FP32 [-1,3,-1]"},
      {[](TensorCall& call) { call.inputs[0].shape = {}; }, "input 'a': is FP32 [], expected"},
      {[](TensorCall& call) { call.inputs[0].shape[0] = call.inputs[1].shape[0] = 5; },
       "input 'a': the batch is 5, expected 1 to 4 (the ensemble's max_batch_size)"},
      {[](TensorCall& call) { call.inputs[0].shape[0] = call.inputs[1].shape[0] = 0; },
       "input 'a': the batch is 0, expected 1 to 4"},
      {[](TensorCall& call) { call.inputs[1].shape[0] = 1; },
       "input 'b': the batch is 1, but that of the first input is 2"},
      {[](TensorCall& call) { call.inputs.pop_back(); }, "inputs: the ensemble's input 'b' is missing"},
      {[](TensorCall& call) { call.inputs[1] = call.inputs[0]; }, "inputs: input 'a' is given twice"},
      {[](TensorCall& call) { call.outputs.push_back({.name = "nothing"}); },
       "outputs: no output is named 'nothing'; the ensemble's are 'out'"},
  };
  for (const auto& one : cases) {
    TensorCall call = Call();
    one.change(call);
    const absl::Status status = CheckRequest(call, Batched());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.message));
  }
}

TEST(EnsembleRequestTest, WhatMayBeLeftOut) {
  ModelSettings settings = Batched();
  settings.inputs[1].optional = true;
  TensorCall call = Call();
  call.inputs.pop_back();
  EXPECT_TRUE(CheckRequest(call, settings).ok());
}

TEST(EnsembleRequestTest, AnAnswerIsWhatIsDeclared) {
  const TensorSpec declared = Spec("out", {2, -1});
  Tensor output{.name = "out", .type = DataType::kFp32, .shape = {4, 2, 9}, .data = {}};
  EXPECT_TRUE(CheckAnswer(output, declared, /*has_batch_dimension=*/true).ok());
  output.shape = {4, 3, 9};
  const absl::Status status = CheckAnswer(output, declared, true);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "output 'out' is FP32 [4,3,9], but the ensemble declares FP32 [-1,2,-1]");
}

}  // namespace
}  // namespace saccade::server
