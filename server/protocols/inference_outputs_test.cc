#include "server/protocols/inference_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "server/protocols/testing/byte_buffers.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InferenceOutputsTest : public ::testing::Test {
 protected:
  InferenceOutputsTest() { response_.description = &model_; }

  absl::Status Check() const { return CheckOutputs(request_, model_); }

  void Answer() {
    InferenceAnswer answer;
    const absl::Status status = AddOutputs(response_, request_, &answer);
    ASSERT_TRUE(status.ok()) << status;
    const size_t size = SizeOf(answer);
    const std::string sent = testing::Joined(ToBytes(std::move(answer)));
    EXPECT_EQ(sent.size(), size);
    ASSERT_TRUE(message_.ParseFromString(sent));
    ASSERT_EQ(message_.outputs_size(), message_.raw_output_contents_size());
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& output : message_.outputs()) names.push_back(output.name());
    return names;
  }

  template <typename T>
  std::vector<T> Values(int index) const {
    const std::string& raw = message_.raw_output_contents(index);
    std::vector<T> values(raw.size() / sizeof(T));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

  models::Description model_;
  Response response_;
  inference::ModelInferRequest request_;
  inference::ModelInferResponse message_;
};

TEST_F(InferenceOutputsTest, Logits) {
  model_.classes = 2;
  response_.results = {models::Classification{.logits = {1, 2}}, models::Classification{.logits = {3, 4}}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("logits"));
  EXPECT_EQ(message_.outputs(0).datatype(), "FP32");
  EXPECT_THAT(message_.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(Values<float>(0), ElementsAre(1, 2, 3, 4));
}

models::Detection Thing(float x, int64_t label) {
  return {.x_min = x,
          .y_min = x + 1,
          .x_max = x + 2,
          .y_max = x + 3,
          .score = x / 10,
          .label = label,
          .mask = {x}};
}

TEST_F(InferenceOutputsTest, DetectionsArePaddedToTheMostOfTheRequest) {
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {Thing(1, 7)}, .mask_side = 1},
                       models::Detections{.items = {}, .mask_side = 1},
                       models::Detections{.items = {Thing(2, 8), Thing(3, 9)}, .mask_side = 1}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("num_detections", "boxes", "scores", "labels"));
  EXPECT_THAT(Values<int64_t>(0), ElementsAre(1, 0, 2));
  EXPECT_THAT(message_.outputs(1).shape(), ElementsAre(3, 2, 4));
  EXPECT_THAT(Values<float>(1),
              ElementsAre(1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 3, 4, 5, 6));
  EXPECT_THAT(message_.outputs(2).shape(), ElementsAre(3, 2));
  EXPECT_THAT(Values<float>(2), ElementsAre(0.1F, 0, 0, 0, 0.2F, 0.3F));
  EXPECT_EQ(message_.outputs(3).datatype(), "INT64");
  EXPECT_THAT(Values<int64_t>(3), ElementsAre(7, 0, 0, 0, 8, 9));
}

TEST_F(InferenceOutputsTest, NoDetectionsAreEmptyTensors) {
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {}, .mask_side = 28}};
  for (const char* name : {"masks", "boxes", "num_detections"}) request_.add_outputs()->set_name(name);
  Answer();
  EXPECT_THAT(Names(), ElementsAre("num_detections", "boxes", "masks"));
  EXPECT_THAT(Values<int64_t>(0), ElementsAre(0));
  EXPECT_THAT(message_.outputs(1).shape(), ElementsAre(1, 0, 4));
  EXPECT_THAT(message_.outputs(2).shape(), ElementsAre(1, 0, 28, 28));
  EXPECT_THAT(Values<float>(2), IsEmpty());
}

TEST_F(InferenceOutputsTest, MasksComeWhenTheyAreNamed) {
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {Thing(1, 7)}, .mask_side = 1},
                       models::Detections{.items = {Thing(2, 8), Thing(3, 9)}, .mask_side = 1}};
  request_.add_outputs()->set_name("masks");
  Answer();
  EXPECT_THAT(Names(), ElementsAre("masks"));
  EXPECT_THAT(message_.outputs(0).shape(), ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(Values<float>(0), ElementsAre(1, 0, 2, 3));
}

TEST_F(InferenceOutputsTest, LabelMapsShareATensorOnlyIfTheyHaveOneSize) {
  model_.task = models::Task::kSegmentation;
  model_.classes = 2;
  const models::Segmentation wide{.height = 1, .width = 3, .labels = {0, 1, 1}, .areas = {1, 2}};
  const models::Segmentation tall{.height = 3, .width = 1, .labels = {0, 0, 0}, .areas = {3, 0}};
  response_.results = {wide, wide};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("label_map", "areas"));
  EXPECT_EQ(message_.outputs(0).datatype(), "UINT8");
  EXPECT_THAT(message_.outputs(0).shape(), ElementsAre(2, 1, 3));
  EXPECT_THAT(Values<uint8_t>(0), ElementsAre(0, 1, 1, 0, 1, 1));
  response_.results = {wide, tall};
  InferenceAnswer answer;
  const absl::Status refused = AddOutputs(response_, request_, &answer);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("picture 1 has 1 x 3 pixels, picture 0 has 3 x 1"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'areas'"));
  request_.add_outputs()->set_name("areas");
  Answer();
  EXPECT_THAT(Names(), ElementsAre("areas"));
  EXPECT_THAT(message_.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(Values<int64_t>(0), ElementsAre(1, 2, 3, 0));
}

TEST_F(InferenceOutputsTest, Disparity) {
  model_.task = models::Task::kStereo;
  response_.results = {models::Disparity{.height = 2, .width = 1, .values = {1, 2}}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("disparity"));
  EXPECT_THAT(message_.outputs(0).shape(), ElementsAre(1, 2, 1));
  EXPECT_THAT(Values<float>(0), ElementsAre(1, 2));
}

TEST_F(InferenceOutputsTest, UnknownNamesAreRefusedWithThoseThatThereAre) {
  model_.task = models::Task::kSegmentation;
  request_.add_outputs()->set_name("areas");
  EXPECT_TRUE(Check().ok());
  request_.add_outputs()->set_name("boxes");
  EXPECT_EQ(Check().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Check().message()),
              HasSubstr("no output is named 'boxes'; the model's are 'label_map', 'areas'"));
}

TEST_F(InferenceOutputsTest, ParametersOfOutputsAreNotIgnored) {
  auto* output = request_.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["my_own"].set_int64_param(3);
  EXPECT_TRUE(Check().ok());
  (*output->mutable_parameters())["classification"].set_int64_param(3);
  EXPECT_EQ(Check().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(InferenceOutputsTest, TooLargeAnAnswerIsAnError) {
  model_.classes = 2;
  response_.results = {models::Classification{.logits = {1, 2}}};
  Answer();
  InferenceAnswer answer;
  ASSERT_TRUE(AddOutputs(response_, request_, &answer).ok());
  const auto size = static_cast<int64_t>(message_.ByteSizeLong());
  EXPECT_TRUE(CheckSize(answer, size).ok());
  EXPECT_EQ(CheckSize(answer, size - 1).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(InferenceOutputsTest, ActionsArePaddedAndInSeconds) {
  model_.task = models::Task::kActions;
  model_.input.clip.frames_per_second = 25;
  response_.results = {models::Actions{.items = {}},
                       models::Actions{.items = {{.start = 5, .end = 10, .score = 0.5F, .label = 3}}}};
  response_.sent = {{.frames_per_second = 25}, {.frames_per_second = 10}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("num_actions", "segments", "scores", "labels"));
  EXPECT_THAT(Values<int64_t>(0), ElementsAre(0, 1));
  EXPECT_THAT(message_.outputs(1).shape(), ElementsAre(2, 1, 2));
  EXPECT_THAT(Values<float>(1), ElementsAre(0, 0, 0.5F, 1));
  EXPECT_THAT(Values<int64_t>(3), ElementsAre(0, 3));
  // A tensor's frames are as many a second as the model is used to.
  response_.sent.clear();
  Answer();
  EXPECT_THAT(Values<float>(1), ElementsAre(0, 0, 0.2F, 0.4F));
}

TEST_F(InferenceOutputsTest, RestoredVolumesHaveOneSize) {
  model_.task = models::Task::kRestoration;
  const models::Restoration volume{.depth = 1, .height = 1, .width = 2, .values = {1, 2}};
  response_.results = {volume, volume};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("restored"));
  EXPECT_THAT(message_.outputs(0).shape(), ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(Values<float>(0), ElementsAre(1, 2, 1, 2));
  std::get<models::Restoration>(response_.results[1]).width = 1;
  InferenceAnswer answer;
  EXPECT_THAT(std::string(AddOutputs(response_, request_, &answer).message()), HasSubstr("one size"));
}

}  // namespace
}  // namespace saccade::server
