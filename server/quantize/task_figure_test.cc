#include "server/quantize/task_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/pictures/png.h"
#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

class TaskFigureTest : public LabelFolderTest {
 protected:
  static std::unique_ptr<TaskFigure> FigureOf(models::Task task) {
    models::Description description;
    description.task = task;
    description.classes = 4;
    return MakeTaskFigure(description);
  }
  LabelledItem WithMask(const std::vector<uint8_t>& pixels) const {
    const auto width = static_cast<int64_t>(pixels.size());
    return {.files = {"p.jpg"}, .label = -1, .truth = Write("m.png", *GreyPng(pixels.data(), 1, width))};
  }
  LabelledItem WithDisparities(const std::vector<uint16_t>& steps) const {
    const auto width = static_cast<int64_t>(steps.size());
    return {.files = {"p.jpg"}, .label = -1, .truth = Write("d.png", *GreyPng(steps.data(), 1, width))};
  }
};

TEST_F(TaskFigureTest, Top1IsTheShareOfRightClasses) {
  const auto figure = FigureOf(models::Task::kClassification);
  EXPECT_FALSE(figure->Value().ok()) << "nothing was added";
  for (const int64_t label : {1, 2, 1, 0}) {
    const LabelledItem item = {.files = {"p.jpg"}, .label = label, .truth = ""};
    ASSERT_TRUE(figure->Add(item, models::Classification{.logits = {0, 3, 1, 2}}).ok());
  }
  EXPECT_DOUBLE_EQ(*figure->Value(), 0.5);
}

// Worked out by hand: class 0 has 2 of 5 pixels, class 1 has 1 of 3, class 2 is predicted once and never
// right; class 3 does not occur.
TEST_F(TaskFigureTest, MeanIouIsOverThePixelsOfAllItems) {
  const auto figure = FigureOf(models::Task::kSegmentation);
  const auto add = [&](const std::vector<uint8_t>& expected, const std::vector<uint8_t>& got) {
    return figure->Add(
        WithMask(expected),
        models::Segmentation{
            .height = 1, .width = static_cast<int64_t>(got.size()), .labels = got, .areas = {}});
  };
  ASSERT_TRUE(add({0, 0, 255}, {0, 1, 3}).ok());
  ASSERT_TRUE(add({1, 1, 0, 0}, {1, 0, 0, 2}).ok());
  EXPECT_DOUBLE_EQ(*figure->Value(), (2.0 / 5 + 1.0 / 3 + 0) / 3);
  const auto wrong_size = add({1, 1}, {1, 0, 0});
  EXPECT_THAT(std::string(wrong_size.message()),
              HasSubstr("m.png: has 2 x 1 pixels, and its picture has 3 x 1"));
  const auto ignored = FigureOf(models::Task::kSegmentation);
  ASSERT_TRUE(ignored
                  ->Add(WithMask({255}),
                        models::Segmentation{.height = 1, .width = 1, .labels = {0}, .areas = {1, 0, 0, 0}})
                  .ok());
  EXPECT_FALSE(ignored->Value().ok());
}

TEST_F(TaskFigureTest, TheEndPointErrorIsOverTheMeasuredPixels) {
  const auto figure = FigureOf(models::Task::kStereo);
  const auto add = [&](const std::vector<uint16_t>& steps, const std::vector<float>& got) {
    return figure->Add(
        WithDisparities(steps),
        models::Disparity{.height = 1, .width = static_cast<int64_t>(got.size()), .values = got});
  };
  ASSERT_TRUE(add({256, 0}, {3, 100}).ok());
  ASSERT_TRUE(add({512, 512, 512}, {1.5F, 2, 2}).ok());
  EXPECT_DOUBLE_EQ(*figure->Value(), (2 + 0.5) / 4);
}

TEST_F(TaskFigureTest, AFailureNamesTheItem) {
  const auto figure = FigureOf(models::Task::kStereo);
  const absl::Status failed = figure->Add({.files = {"p.jpg"}}, models::Failure{.message = "not finite"});
  EXPECT_THAT(std::string(failed.message()), HasSubstr("p.jpg: the network gave no result: not finite"));
}

}  // namespace
}  // namespace saccade::server
