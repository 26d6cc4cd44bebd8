#include "server/quantize/labelled_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <utility>

#include "server/quantize/folder_files.h"
#include "server/quantize/testing/label_folder.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class LabelledItemsTest : public LabelFolderTest {
 protected:
  LabelledItemsTest() {
    description_.classes = 3;
    description_.labels = {"cat", "dog", "owl"};
  }

  std::vector<LabelledItem> List(const std::string& labels) {
    warnings_.str("");
    const auto items = ListLabelledItems(Path("pictures"), labels, description_, warnings_);
    error_ = std::string(items.status().message());
    return items.ok() ? *items : std::vector<LabelledItem>();
  }
  // Returns the names of the pictures with their classes.
  std::vector<std::pair<std::string, int64_t>> Classes(const std::string& labels) {
    std::vector<std::pair<std::string, int64_t>> found;
    for (const LabelledItem& item : List(labels))
      found.emplace_back(FileName(item.files.front()), item.label);
    return found;
  }
  // Returns the names of the pictures with those of the files that have the truth.
  std::vector<std::pair<std::string, std::string>> Truths(const std::string& labels) {
    std::vector<std::pair<std::string, std::string>> found;
    for (const LabelledItem& item : List(labels))
      found.emplace_back(FileName(item.files.front()), FileName(item.truth));
    return found;
  }

  models::Description description_;
  std::ostringstream warnings_;
  std::string error_;
};

TEST_F(LabelledItemsTest, AListLabelsTheFilesOfTheFolder) {
  WritePicture("pictures/a.png");
  WritePicture("pictures/b.png");
  // The list may lie beside the pictures.
  EXPECT_THAT(Classes(Write("pictures/val.txt", "b.png 2\na.png dog\n")),
              ElementsAre(Pair("a.png", 1), Pair("b.png", 2)))
      << error_;
  EXPECT_THAT(warnings_.str(), HasSubstr("left out: files that are no pictures: 1; the first: "));
  EXPECT_THAT(Classes(Write("val.csv", "Image,Class\nx/b.png,2\na.png,\"dog\"\n")),
              ElementsAre(Pair("a.png", 1), Pair("b.png", 2)))
      << error_;
}

TEST_F(LabelledItemsTest, WhatAListDoesNotFitIsTold) {
  WritePicture("pictures/a.png");
  WritePicture("pictures/b.png");
  EXPECT_THAT(Classes(Write("val.txt", "a.png 0\n")), IsEmpty());
  EXPECT_THAT(error_,
              AllOf(HasSubstr("pictures: pictures without a label: 1, the first is b.png; expected a line "
                              "for each in "),
                    HasSubstr("Add the labels")));
  EXPECT_THAT(Classes(Write("val.txt", "a.png 0\nb.png 0\nc.png 0\nd.png 0\n")), IsEmpty());
  EXPECT_THAT(error_,
              HasSubstr("val.txt: labels without a picture: 2, the first is of 'c.png' in line 3; expected "
                        "names of files in "));
  EXPECT_THAT(Classes(Write("val.txt", "a.png 0\nb.png 3\n")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("val.txt, line 2: the class 3 is out of range; the model has 3 classes"));
  EXPECT_THAT(Classes(Write("val.txt", "a.png 0\nb.png 0\na.png 1\n")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("line 3: labels 'a.png' a second time"));
  // Only what is neither a picture nor a class is a header.
  EXPECT_THAT(Classes(Write("val.csv", "c.png,0\na.png,0\nb.png,0\n")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("labels without a picture: 1"));
  EXPECT_THAT(Classes(Write("elsewhere/x.txt", "").substr(0, Path("elsewhere").size())), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("elsewhere: is a folder; for a classification expected a list"));
}

TEST_F(LabelledItemsTest, FoldersAreClasses) {
  for (const char* name : {"owl/a.png", "cat/b.png", "1/c.png"})
    WritePicture(std::string("pictures/") + name);
  Write("pictures/owl/notes.txt", "text");
  EXPECT_THAT(Classes(Path("pictures")), ElementsAre(Pair("c.png", 1), Pair("b.png", 0), Pair("a.png", 2)))
      << error_;
  EXPECT_THAT(warnings_.str(), HasSubstr("files that are no pictures: 1"));
  WritePicture("pictures/d.png");
  EXPECT_THAT(Classes(Path("pictures")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("the first is d.png; expected every picture in the folder of its class"));
}

// As those of ImageNet, which have the numbers of WordNet.
TEST_F(LabelledItemsTest, FoldersOfOtherNamesAreClassesInTheirOrder) {
  for (const char* name : {"n02/a.png", "n01/b.png", "n03/c.png"})
    WritePicture(std::string("pictures/") + name);
  EXPECT_THAT(Classes(Path("pictures")), ElementsAre(Pair("b.png", 0), Pair("a.png", 1), Pair("c.png", 2)))
      << error_;
  EXPECT_THAT(warnings_.str(), HasSubstr("in the order of their names, the first is n01"));
  WritePicture("pictures/n04/d.png");
  EXPECT_THAT(Classes(Path("pictures")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("or 3 folders in the order of the classes, and found 4"));
  std::filesystem::rename(Path("pictures/n04"), Path("pictures/cat"));
  std::filesystem::remove_all(Path("pictures/n03"));
  EXPECT_THAT(Classes(Path("pictures")), IsEmpty()) << "one has a name, so the others are misspelt";
  EXPECT_THAT(error_, HasSubstr("the label 'n01' is no class of the model"));
}

TEST_F(LabelledItemsTest, AFolderWithoutFoldersHasNoClasses) {
  WritePicture("pictures/a.png");
  EXPECT_THAT(Classes(Path("pictures")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("pictures: has no folders"));
}

TEST_F(LabelledItemsTest, MasksHaveThePicturesNames) {
  description_.task = models::Task::kSegmentation;
  WritePicture("pictures/a.png");
  WritePicture("pictures/b.jpg");
  for (const char* name : {"masks/a.png", "masks/b.PNG", "masks/palette.txt"}) Write(name, "not read yet");
  EXPECT_THAT(Truths(Path("masks")), ElementsAre(Pair("a.png", "a.png"), Pair("b.jpg", "b.PNG"))) << error_;
  EXPECT_THAT(warnings_.str(), HasSubstr("files that are no PNG masks: 1; "));
  Write("masks/c.png", "");
  EXPECT_THAT(Truths(Path("masks")), IsEmpty());
  EXPECT_THAT(error_,
              HasSubstr("masks: PNG masks without a picture: 1, the first is c.png; expected the name of a "
                        "picture in "));
  std::filesystem::remove(Path("masks/c.png"));
  WritePicture("pictures/d.png");
  EXPECT_THAT(Truths(Path("masks")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("pictures without a label: 1, the first is d.png"));
  for (const char* labels : {"pictures", "nowhere"}) {
    EXPECT_THAT(Truths(Path(labels)), IsEmpty());
    EXPECT_THAT(error_, HasSubstr("expected a folder of its own with PNG masks")) << labels;
  }
}

TEST_F(LabelledItemsTest, DisparitiesHaveTheLeftPicturesNames) {
  description_.task = models::Task::kStereo;
  description_.input.views = 2;
  for (const char* name : {"a-left", "a-right", "b-left", "b-right"})
    WritePicture(std::string("pictures/") + name + ".png");
  Write("disparities/a-left.pfm", "not read yet");
  Write("disparities/b-left.png", "not read yet");
  EXPECT_THAT(Truths(Path("disparities")),
              ElementsAre(Pair("a-left.png", "a-left.pfm"), Pair("b-left.png", "b-left.png")))
      << error_;
  Write("disparities/a-right.pfm", "");
  EXPECT_THAT(Truths(Path("disparities")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("the first is a-right.pfm; expected the name of a left picture in "));
  std::filesystem::remove(Path("disparities/a-right.pfm"));
  Write("disparities/a-left.png", "");
  EXPECT_THAT(Truths(Path("disparities")), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("expected one file for each picture"));
}

TEST(CheckTaskHasLabelsTest, OtherTasksAreToldWhatToDo) {
  EXPECT_TRUE(CheckTaskHasLabels(models::Task::kClassification).ok());
  EXPECT_TRUE(CheckTaskHasLabels(models::Task::kSegmentation).ok());
  EXPECT_TRUE(CheckTaskHasLabels(models::Task::kStereo).ok());
  EXPECT_THAT(std::string(CheckTaskHasLabels(models::Task::kDetection).message()),
              HasSubstr("saccade evaluate --dataset coco"));
  EXPECT_THAT(std::string(CheckTaskHasLabels(models::Task::kEmbedding).message()),
              AllOf(HasSubstr("no figure for the task embedding"), HasSubstr("Leave out --labels")));
}

}  // namespace
}  // namespace saccade::server
