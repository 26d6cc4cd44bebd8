#include "server/ensembles/ensemble_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "server/ensembles/testing/ensembles.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

TensorDescription Described(const char* name, DataType type, std::vector<int64_t> shape) {
  return {.name = name, .type = type, .shape = std::move(shape)};
}

class EnsembleCheckTest : public ::testing::Test {
 protected:
  EnsembleCheckTest() {
    models_["detector"] = {.interface = {.name = "detector",
                                         .inputs = {Described("image", DataType::kFp32, {-1, 3, 64, 64})},
                                         .outputs = {Described("boxes", DataType::kFp32, {-1, -1, 4}),
                                                     Described("labels", DataType::kInt64, {-1, -1})},
                                         .other_inputs = {Described("image", DataType::kBytes, {-1}),
                                                          Described("image", DataType::kBytes, {-1, 1})},
                                         .max_batch_size = 4}};
    models_["areas"] = {.interface = {.name = "areas",
                                      .inputs = {Described("boxes", DataType::kFp32, {-1, 100, 4})},
                                      .outputs = {Described("areas", DataType::kFp32, {-1, 100})},
                                      .max_batch_size = 8}};
  }

  // A detector, and a model that takes its boxes; at most four pictures.
  static ModelSettings Good() {
    ModelSettings settings =
        EnsembleOf({Spec("picture", {1}, DataType::kBytes)}, {Spec("areas", {-1}), Spec("boxes", {-1, 4})},
                   {Step("detector", {{"image", "picture"}}, {{"boxes", "boxes"}}),
                    Step("areas", {{"boxes", "boxes"}}, {{"areas", "areas"}})});
    settings.has_batch_dimension = true;
    settings.batching.max_batch_size = 4;
    return settings;
  }

  static std::shared_ptr<const Ensemble> Served(ModelSettings settings) {
    return std::make_shared<const Ensemble>(std::move(settings), 1);
  }

  // Adds an ensemble under this name, for use as a step.
  void AddEnsemble(const char* name, ModelSettings settings) {
    settings.name = name;
    auto served = Served(std::move(settings));
    models_[name] = {.interface = InterfaceOf(*served), .ensemble = std::move(served)};
  }

  absl::Status Check(const ModelSettings& settings) {
    return CheckEnsemble(*Served(settings),
                         [this](const std::string& model, int64_t version) -> absl::StatusOr<StepModel> {
                           ++asked_;
                           if (version > 1) return absl::NotFoundError("no such version");
                           const auto found = models_.find(model);
                           if (found == models_.end()) return absl::NotFoundError("no model '" + model + "'");
                           return found->second;
                         });
  }

  void ExpectWrong(const ModelSettings& settings, const std::string& message) {
    const absl::Status status = Check(settings);
    EXPECT_FALSE(status.ok()) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  std::map<std::string, StepModel> models_;
  int asked_ = 0;
};

TEST_F(EnsembleCheckTest, WhatFitsIsGood) { EXPECT_TRUE(Check(Good()).ok()) << Check(Good()); }

TEST_F(EnsembleCheckTest, EachFormOfAnInputWillDo) {
  ModelSettings settings = Good();
  settings.inputs[0] = Spec("picture", {3, 64, -1});
  EXPECT_TRUE(Check(settings).ok()) << Check(settings);
  settings = Good();
  settings.has_batch_dimension = false;
  settings.outputs = {Spec("areas", {-1, -1}), Spec("boxes", {-1, 7, 4})};
  settings.inputs[0] = Spec("picture", {-1}, DataType::kBytes);
  EXPECT_TRUE(Check(settings).ok()) << Check(settings);
}

TEST_F(EnsembleCheckTest, OutputsMayBeLeftUnused) {
  ModelSettings settings = Good();
  settings.ensemble[0].outputs["labels"] = "nobody's";
  EXPECT_TRUE(Check(settings).ok()) << Check(settings);
}

TEST_F(EnsembleCheckTest, WhatIsWrongIsNamed) {
  ModelSettings settings = Good();
  settings.ensemble[1].model = std::string("elsewhere");
  ExpectWrong(settings, "step of model 'elsewhere' that makes 'areas': no model 'elsewhere'");

  settings = Good();
  settings.ensemble[0].version = 7;
  ExpectWrong(settings, "step of model 'detector' that makes 'boxes': no such version");

  settings = Good();
  settings.inputs[0].type = DataType::kInt8;
  ExpectWrong(
      settings,
      "input 'image' takes FP32 [-1,3,64,64] or BYTES [-1] or BYTES [-1,1], but 'picture' is INT8 [-1,1]");

  settings = Good();
  settings.inputs[0].dims = {2};
  ExpectWrong(settings, "but 'picture' is BYTES [-1,2]");

  settings = Good();
  settings.ensemble[0].inputs = {{"images", "picture"}};
  ExpectWrong(settings, "input_map has no entry for the model's input 'image'");

  settings = Good();
  settings.ensemble[0].inputs["more"] = "picture";
  ExpectWrong(settings, "input_map names the input 'more', the model's are 'image'");

  settings = Good();
  settings.ensemble[0].outputs = {{"box", "boxes"}};
  ExpectWrong(settings, "output_map names the output 'box', the model's are 'boxes', 'labels'");

  settings = Good();
  settings.ensemble[0].outputs = {{"labels", "boxes"}};
  ExpectWrong(settings, "input 'boxes' takes FP32 [-1,100,4], but 'boxes' is INT64 [-1,-1]");

  settings = Good();
  settings.outputs[1].dims = {-1, 5};
  ExpectWrong(settings,
              "output 'boxes' is declared as FP32 [-1,-1,5], but the step of model 'detector' that makes "
              "'boxes' returns FP32 [-1,-1,4]");

  settings = Good();
  settings.batching.max_batch_size = 5;
  ExpectWrong(settings,
              "the model's max_batch_size is 4, lower than the ensemble's 5; lower that of the ensemble");

  settings = Good();
  settings.outputs[0].reshape = std::vector<int64_t>{1};
  ExpectWrong(settings, "output 'areas' is declared as FP32 [-1,1], but the step");
}

TEST_F(EnsembleCheckTest, StepsSeeTheReshapedTensors) {
  ModelSettings settings = Good();
  settings.inputs[0] = Spec("picture", {1, 3, 64, 64});
  ExpectWrong(settings, "but 'picture' is FP32 [-1,1,3,64,64]");
  settings.inputs[0].reshape = std::vector<int64_t>{3, 64, 64};
  settings.outputs[1] = Spec("boxes", {-1, 2, 2});
  settings.outputs[1].reshape = std::vector<int64_t>{-1, 4};
  EXPECT_TRUE(Check(settings).ok()) << Check(settings);
}

TEST_F(EnsembleCheckTest, WithoutABatchAStepComputesABatchOfOne) {
  ModelSettings settings = Good();
  settings.has_batch_dimension = false;
  settings.inputs[0] = Spec("picture", {3, 64, 64});
  EXPECT_TRUE(Check(settings).ok()) << Check(settings);
  settings.inputs[0] = Spec("picture", {64, 64});
  ExpectWrong(settings, "but 'picture' is FP32 [64,64]");
  settings = Good();
  settings.inputs[0] = Spec("picture", {64, 64});
  ExpectWrong(settings, "but 'picture' is FP32 [-1,64,64]");
}

TEST_F(EnsembleCheckTest, ABatchOfOneIsAddedWhereItIsMissing) {
  const ModelInterface& detector = models_["detector"].interface;
  const auto shape_for = [](const ModelInterface& model, std::vector<int64_t> shape) {
    TensorCall call;
    call.inputs = {{.name = "image", .type = DataType::kFp32, .shape = std::move(shape), .data = {}}};
    AddBatchOfOne(model, call);
    return call.inputs[0].shape;
  };
  EXPECT_EQ(shape_for(detector, {3, 64, 64}), (std::vector<int64_t>{1, 3, 64, 64}));
  EXPECT_EQ(shape_for(detector, {2, 3, 64, 64}), (std::vector<int64_t>{2, 3, 64, 64}));
  EXPECT_EQ(shape_for(detector, {64, 64}), (std::vector<int64_t>{64, 64})) << "the step refuses it";
  ModelInterface whole = detector;
  whole.max_batch_size = 0;
  EXPECT_EQ(shape_for(whole, {3, 64, 64}), (std::vector<int64_t>{3, 64, 64}));
}

TEST_F(EnsembleCheckTest, InputsThatModelsDoWithoutMayBeLeftOut) {
  models_["areas"].interface.inputs.push_back(Described("scale", DataType::kFp32, {1}));
  ExpectWrong(Good(), "input_map has no entry for the model's input 'scale'");
  models_["areas"].interface.inputs.back().optional = true;
  EXPECT_TRUE(Check(Good()).ok()) << Check(Good());
}

TEST_F(EnsembleCheckTest, EnsemblesAreStepsToo) {
  AddEnsemble("inner", Good());
  ModelSettings outer = EnsembleOf({Spec("picture", {1}, DataType::kBytes)}, {Spec("areas", {-1})},
                                   {Step("inner", {{"picture", "picture"}}, {{"areas", "areas"}})});
  outer.has_batch_dimension = true;
  outer.batching.max_batch_size = 2;
  EXPECT_TRUE(Check(outer).ok()) << Check(outer);
  models_.erase("areas");
  ExpectWrong(outer,
              "step of model 'inner' that makes 'areas': step of model 'areas' that makes 'areas': no model");
}

TEST_F(EnsembleCheckTest, EnsemblesDoNotGoInACircle) {
  const auto through = [](const char* model) {
    return EnsembleOf({Spec("x")}, {Spec("y")}, {Step(model, {{"x", "x"}}, {{"y", "y"}})});
  };
  AddEnsemble("a", through("b"));
  AddEnsemble("b", through("a"));
  ExpectWrong(through("a"), "ensemble 'a' is a step of itself");
}

TEST_F(EnsembleCheckTest, WhatIsAStepOftenIsLookedAtOnce) {
  models_["m"] = {.interface = {.name = "m",
                                .inputs = {Described("x", DataType::kFp32, {-1})},
                                .outputs = {Described("y", DataType::kFp32, {-1})}}};
  std::string below = "m";
  for (int level = 0; level < 20; ++level) {
    const std::string name = "level" + std::to_string(level);
    AddEnsemble(name.c_str(), EnsembleOf({Spec("x")}, {Spec("y")},
                                         {Step(below, {{"x", "x"}}, {{"y", "z"}}),
                                          Step(below, {{"x", "z"}}, {{"y", "y"}})}));
    below = name;
  }
  EXPECT_TRUE(Check(EnsembleOf({Spec("x")}, {Spec("y")}, {Step(below, {{"x", "x"}}, {{"y", "y"}})})).ok());
  EXPECT_LE(asked_, 41);
}

}  // namespace
}  // namespace saccade::server
