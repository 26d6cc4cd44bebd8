#include "server/quantize/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<LabelledItem> Numbered(int count) {
  std::vector<LabelledItem> items;
  for (int i = 0; i < count; ++i)
    items.push_back({.files = {absl::StrFormat("%04d", i)}, .label = i, .truth = ""});
  return items;
}

TEST(HoldOutTest, TheItemsAreDividedAndEvenlySpread) {
  struct Case {
    int items;
    size_t calibrating;
    size_t held_out;
  };
  for (const Case& one : {Case{16, 8, 8}, Case{20, 8, 12}, Case{100, 25, 75}, Case{2000, 1500, 500}}) {
    const auto divided = HoldOut("folder", Numbered(one.items), 64, 500);
    ASSERT_TRUE(divided.ok()) << divided.status();
    EXPECT_EQ(divided->calibrating.size(), one.calibrating) << one.items;
    ASSERT_EQ(divided->held_out.size(), one.held_out) << one.items;
    std::set<std::string> all;
    for (const ItemFiles& files : divided->calibrating) all.insert(files.front());
    for (const LabelledItem& item : divided->held_out) {
      all.insert(item.files.front());
      EXPECT_EQ(absl::StrFormat("%04d", item.label), item.files.front());
    }
    EXPECT_EQ(all.size(), static_cast<size_t>(one.items)) << "none calibrates and is held out";
    const auto first_half =
        std::count_if(divided->held_out.begin(), divided->held_out.end(),
                      [&](const LabelledItem& item) { return item.label < one.items / 2; });
    EXPECT_NEAR(static_cast<double>(first_half), static_cast<double>(one.held_out) / 2, 1) << one.items;
  }
}

TEST(HoldOutTest, TooFewAreTold) {
  const auto divided = HoldOut("folder", Numbered(15), 64, 500);
  EXPECT_THAT(std::string(divided.status().message()),
              AllOf(HasSubstr("folder: has 15 labelled items; expected at least 16: 8 on which"),
                    HasSubstr("leave out --labels")));
}

TEST(ResolutionWarningTest, AnItemThatCountsForMoreThanTheBoundIsTold) {
  EXPECT_THAT(
      ResolutionWarning(models::Task::kClassification, 40, 0.005),
      AllOf(HasSubstr("40 held-out items measure top-1 in steps of 2.5 % or more, so a loss of 0.5 %"),
            HasSubstr("expected at least 200 held-out items")));
  EXPECT_EQ(ResolutionWarning(models::Task::kClassification, 200, 0.005), "");
  EXPECT_EQ(ResolutionWarning(models::Task::kClassification, 40, 0), "") << "no number would do";
  EXPECT_EQ(ResolutionWarning(models::Task::kSegmentation, 40, 0.005), "") << "its steps are pixels";
}

// The class of a picture is its width, less 10.
class WidthModel final : public models::Model {
 public:
  WidthModel() {
    description_.classes = 4;
    description_.input.height = description_.input.width = description_.input.short_side = 8;
  }
  const models::Description& description() const override { return description_; }
  std::vector<models::TaskResult> Run(const models::Batch& batch) const override {
    models::Classification answer;
    answer.logits.assign(4, 0.0F);
    answer.logits.at(static_cast<size_t>(batch.placements.front().sent.width - 10)) = 1;
    return {answer};
  }

 private:
  models::Description description_;
};

class MeasureFigureTest : public LabelFolderTest {
 protected:
  LabelledItem Picture(int width, int64_t label) const {
    return {.files = {WritePicture(absl::StrCat(width, ".png"), width)}, .label = label, .truth = ""};
  }

  const WidthModel model_;
};

TEST_F(MeasureFigureTest, TheAnswersAreComparedWithTheLabels) {
  std::vector<size_t> done;
  const auto figure = MeasureFigure(model_, model_.description(),
                                    {Picture(10, 0), Picture(11, 1), Picture(12, 0), Picture(13, 0)},
                                    [&](size_t items) { done.push_back(items); });
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(*figure, 0.5);
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3));
}

TEST_F(MeasureFigureTest, APictureThatCannotBeReadIsTold) {
  const LabelledItem broken = {.files = {Write("broken.png", "text")}, .label = 0, .truth = ""};
  const auto figure = MeasureFigure(model_, model_.description(), {broken}, [](size_t /*items*/) {});
  EXPECT_THAT(std::string(figure.status().message()),
              AllOf(HasSubstr("broken.png"), HasSubstr("repair it, or remove it and its label")));
}

}  // namespace
}  // namespace saccade::server
