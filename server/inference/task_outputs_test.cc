#include "server/inference/task_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TaskOutputsTest : public ::testing::Test {
 protected:
  TaskOutputsTest() { response_.description = &model_; }

  absl::Status Check() const { return CheckOutputs(wanted_, model_, form_); }

  absl::StatusOr<std::vector<Tensor>> Make() const {
    return MakeOutputs(std::make_shared<const Response>(response_), wanted_, form_);
  }

  void Answer() {
    auto made = Make();
    ASSERT_TRUE(made.ok()) << made.status();
    outputs_ = *std::move(made);
    for (const Tensor& output : outputs_) EXPECT_TRUE(CheckBytes(output).ok()) << CheckBytes(output);
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const Tensor& output : outputs_) names.push_back(output.name);
    return names;
  }

  template <typename T>
  std::vector<T> Numbers(int index) const {
    const BytePieces& bytes = outputs_.at(index).data;
    std::vector<T> numbers(bytes.size() / sizeof(T));
    bytes.CopyTo(reinterpret_cast<char*>(numbers.data()));
    return numbers;
  }

  // The only element of an output of BYTES.
  std::string Text(int index) const {
    const BytePieces& bytes = outputs_.at(index).data;
    std::string element(bytes.size(), ' ');
    bytes.CopyTo(element.data());
    return element.substr(4);
  }

  void Want(const char* name) { wanted_.push_back({.name = name}); }

  models::Description model_;
  ItemsForm form_ = ItemsForm::kPadded;
  Response response_;
  std::vector<WantedOutput> wanted_;
  std::vector<Tensor> outputs_;
};

TEST_F(TaskOutputsTest, Logits) {
  model_.classes = 2;
  response_.results = {models::Classification{.logits = {1, 2}}, models::Classification{.logits = {3, 4}}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("logits"));
  EXPECT_EQ(outputs_.at(0).type, DataType::kFp32);
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(2, 2));
  EXPECT_THAT(Numbers<float>(0), ElementsAre(1, 2, 3, 4));
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

TEST_F(TaskOutputsTest, DetectionsArePaddedToTheMostOfTheRequest) {
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {Thing(1, 7)}, .mask_side = 1},
                       models::Detections{.items = {}, .mask_side = 1},
                       models::Detections{.items = {Thing(2, 8), Thing(3, 9)}, .mask_side = 1}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("num_detections", "boxes", "scores", "labels"));
  EXPECT_THAT(Numbers<int64_t>(0), ElementsAre(1, 0, 2));
  EXPECT_THAT(outputs_.at(1).shape, ElementsAre(3, 2, 4));
  EXPECT_THAT(Numbers<float>(1),
              ElementsAre(1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 3, 4, 5, 6));
  EXPECT_THAT(outputs_.at(2).shape, ElementsAre(3, 2));
  EXPECT_THAT(Numbers<float>(2), ElementsAre(0.1F, 0, 0, 0, 0.2F, 0.3F));
  EXPECT_EQ(outputs_.at(3).type, DataType::kInt64);
  EXPECT_THAT(Numbers<int64_t>(3), ElementsAre(7, 0, 0, 0, 8, 9));
}

TEST_F(TaskOutputsTest, NoDetectionsAreEmptyTensors) {
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {}, .mask_side = 28}};
  for (const char* name : {"masks", "boxes", "num_detections"}) Want(name);
  Answer();
  EXPECT_THAT(Names(), ElementsAre("num_detections", "boxes", "masks"));
  EXPECT_THAT(Numbers<int64_t>(0), ElementsAre(0));
  EXPECT_THAT(outputs_.at(1).shape, ElementsAre(1, 0, 4));
  EXPECT_THAT(outputs_.at(2).shape, ElementsAre(1, 0, 28, 28));
  EXPECT_THAT(Numbers<float>(2), IsEmpty());
}

TEST_F(TaskOutputsTest, MasksComeWhenTheyAreNamed) {
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {Thing(1, 7)}, .mask_side = 1},
                       models::Detections{.items = {Thing(2, 8), Thing(3, 9)}, .mask_side = 1}};
  Want("masks");
  Answer();
  EXPECT_THAT(Names(), ElementsAre("masks"));
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(Numbers<float>(0), ElementsAre(1, 0, 2, 3));
}

TEST_F(TaskOutputsTest, LabelMapsShareATensorOnlyIfTheyHaveOneSize) {
  model_.task = models::Task::kSegmentation;
  model_.classes = 2;
  const models::Segmentation wide{.height = 1, .width = 3, .labels = {0, 1, 1}, .areas = {1, 2}};
  const models::Segmentation tall{.height = 3, .width = 1, .labels = {0, 0, 0}, .areas = {3, 0}};
  response_.results = {wide, wide};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("label_map", "areas"));
  EXPECT_EQ(outputs_.at(0).type, DataType::kUint8);
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(2, 1, 3));
  EXPECT_THAT(Numbers<uint8_t>(0), ElementsAre(0, 1, 1, 0, 1, 1));
  response_.results = {wide, tall};
  const absl::Status refused = Make().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("picture 1 has 1 x 3 pixels, picture 0 has 3 x 1"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'areas'"));
  Want("areas");
  Answer();
  EXPECT_THAT(Names(), ElementsAre("areas"));
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(2, 2));
  EXPECT_THAT(Numbers<int64_t>(0), ElementsAre(1, 2, 3, 0));
}

TEST_F(TaskOutputsTest, MasksShareATensorOnlyIfTheyHaveOneSize) {
  model_.task = models::Task::kDetection;
  models::Detection fine = Thing(2, 8);
  fine.mask = {1, 2, 3, 4};
  response_.results = {models::Detections{.items = {Thing(1, 7)}, .mask_side = 1},
                       models::Detections{.items = {fine}, .mask_side = 2}};
  Want("masks");
  for (const ItemsForm form : {ItemsForm::kPadded, ItemsForm::kFlat}) {
    form_ = form;
    const absl::Status refused = Make().status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(refused.message()),
        HasSubstr("picture 1 has a mask of 4 values, picture 0 has masks of 1, and output 'masks' is a "
                  "single tensor; send only pictures of the same size together"));
  }
  // The side of a picture without detections does not matter.
  std::get<models::Detections>(response_.results[0]).items.clear();
  Answer();
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(Numbers<float>(0), ElementsAre(1, 2, 3, 4));
}

TEST_F(TaskOutputsTest, RowsShareATensorOnlyIfTheyHaveOneLength) {
  struct Case {
    models::Task task;
    const char* output;
    std::vector<models::TaskResult> results;
  };
  const std::vector<Case> cases = {
      {models::Task::kEmbedding,
       "embedding",
       {models::Embedding{.values = {1}}, models::Embedding{.values = {1, 2, 3}}}},
      {models::Task::kClassification,
       "logits",
       {models::Classification{.logits = {1}}, models::Classification{.logits = {1, 2, 3}}}},
      {models::Task::kSegmentation,
       "areas",
       {models::Segmentation{.labels = {}, .areas = {1}},
        models::Segmentation{.labels = {}, .areas = {1, 2, 3}}}}};
  for (const Case& one : cases) {
    model_.task = one.task;
    response_.results = one.results;
    for (const int64_t classes : {0, 5}) {
      wanted_ = {{.name = one.output, .classes = classes}};
      const absl::Status refused = Make().status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(
          std::string(refused.message()),
          HasSubstr("picture 1 has 3 values, picture 0 has 1, and output '" + std::string(one.output) +
                    "' is a single tensor; send only pictures of the same size together"));
    }
  }
}

TEST_F(TaskOutputsTest, Disparity) {
  model_.task = models::Task::kStereo;
  response_.results = {models::Disparity{.height = 2, .width = 1, .values = {1, 2}}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("disparity"));
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(1, 2, 1));
  EXPECT_THAT(Numbers<float>(0), ElementsAre(1, 2));
}

TEST_F(TaskOutputsTest, UnknownNamesAreRefusedWithThoseThatThereAre) {
  model_.task = models::Task::kSegmentation;
  Want("areas");
  EXPECT_TRUE(Check().ok());
  Want("boxes");
  EXPECT_EQ(Check().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Check().message()),
              HasSubstr("no output is named 'boxes'; the model's are 'label_map', 'areas'"));
}

TEST_F(TaskOutputsTest, ClassesAreText) {
  model_.classes = 3;
  model_.labels = {"cat", "dog", "owl"};
  response_.results = {models::Classification{.logits = {1, 3, 2}}};
  wanted_ = {{.name = "logits", .classes = 2}};
  Answer();
  EXPECT_EQ(outputs_.at(0).type, DataType::kBytes);
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(1, 2));
}

TEST_F(TaskOutputsTest, LabelsAreThoseOfOutputsThatCountClasses) {
  model_.classes = 4;
  model_.labels = {"background", "cat", "dog", "owl"};
  model_.task = models::Task::kSegmentation;
  response_.results = {
      models::Segmentation{.height = 1, .width = 2, .labels = {3, 1}, .areas = {0, 1, 0, 5}}};
  wanted_ = {{.name = "label_map", .classes = 1}, {.name = "areas", .classes = 1}};
  Answer();
  EXPECT_EQ(Text(0), "3:0");
  EXPECT_EQ(Text(1), "5:3:owl");
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {Thing(5, 2)}, .mask_side = 1}};
  for (const ItemsForm form : {ItemsForm::kPadded, ItemsForm::kFlat}) {
    form_ = form;
    wanted_.clear();
    for (const char* name : {"boxes", "scores", "labels", "masks"})
      wanted_.push_back({.name = name, .classes = 1});
    Answer();
    EXPECT_EQ(Text(0), "8.000000:3");
    EXPECT_EQ(Text(1), "0.500000:0");
    EXPECT_EQ(Text(2), "2:0");
    EXPECT_EQ(Text(3), "5.000000:0");
  }
}

TEST_F(TaskOutputsTest, FlatDetectionsComeWithTheirSplits) {
  form_ = ItemsForm::kFlat;
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {Thing(1, 7)}, .mask_side = 1},
                       models::Detections{.items = {}, .mask_side = 1},
                       models::Detections{.items = {Thing(2, 8), Thing(3, 9)}, .mask_side = 1}};
  for (const char* name : {"batch_splits", "boxes", "scores", "labels", "masks"}) Want(name);
  ASSERT_TRUE(Check().ok()) << Check();
  Answer();
  EXPECT_THAT(Names(), ElementsAre("batch_splits", "boxes", "scores", "labels", "masks"));
  EXPECT_THAT(Numbers<int64_t>(0), ElementsAre(0, 1, 1, 3));
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(4));
  EXPECT_THAT(outputs_.at(1).shape, ElementsAre(3, 4));
  EXPECT_THAT(Numbers<float>(1), ElementsAre(1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6));
  EXPECT_THAT(Numbers<int64_t>(3), ElementsAre(7, 8, 9));
  EXPECT_THAT(outputs_.at(4).shape, ElementsAre(3, 1, 1));
  EXPECT_THAT(DescribeOutputs(model_, form_).at(1).shape, ElementsAre(-1, 4));
}

TEST_F(TaskOutputsTest, NothingFoundIsEmptyWhenFlatToo) {
  form_ = ItemsForm::kFlat;
  model_.task = models::Task::kDetection;
  response_.results = {models::Detections{.items = {}, .mask_side = 28}};
  Answer();
  EXPECT_THAT(Numbers<int64_t>(0), ElementsAre(0, 0));
  EXPECT_THAT(outputs_.at(1).shape, ElementsAre(0, 4));
}

TEST_F(TaskOutputsTest, ActionsArePaddedAndInSeconds) {
  model_.task = models::Task::kActions;
  model_.input.clip.frames_per_second = 25;
  response_.results = {models::Actions{.items = {}},
                       models::Actions{.items = {{.start = 5, .end = 10, .score = 0.5F, .label = 3}}}};
  response_.sent = {{.frames_per_second = 25}, {.frames_per_second = 10}};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("num_actions", "segments", "scores", "labels"));
  EXPECT_THAT(Numbers<int64_t>(0), ElementsAre(0, 1));
  EXPECT_THAT(outputs_.at(1).shape, ElementsAre(2, 1, 2));
  EXPECT_THAT(Numbers<float>(1), ElementsAre(0, 0, 0.5F, 1));
  EXPECT_THAT(Numbers<int64_t>(3), ElementsAre(0, 3));
  // The frames of a tensor have the model's rate.
  response_.sent.clear();
  Answer();
  EXPECT_THAT(Numbers<float>(1), ElementsAre(0, 0, 0.2F, 0.4F));
}

TEST_F(TaskOutputsTest, RestoredVolumesHaveOneSize) {
  model_.task = models::Task::kRestoration;
  const models::Restoration volume{.depth = 1, .height = 1, .width = 2, .values = {1, 2}};
  response_.results = {volume, volume};
  Answer();
  EXPECT_THAT(Names(), ElementsAre("restored"));
  EXPECT_THAT(outputs_.at(0).shape, ElementsAre(2, 1, 1, 2));
  EXPECT_THAT(Numbers<float>(0), ElementsAre(1, 2, 1, 2));
  std::get<models::Restoration>(response_.results[1]).width = 1;
  EXPECT_THAT(std::string(Make().status().message()), HasSubstr("volumes of the same size"));
}

}  // namespace
}  // namespace saccade::server
