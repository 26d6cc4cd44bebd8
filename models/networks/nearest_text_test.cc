#include "models/networks/nearest_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/networks/testing/network_files.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FileOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Rename;

TEST(NearestText, SaysThatTheHeadIsRenamed) {
  std::vector<TensorEntry> file = FileOf("resnet18", {{"classes", "3"}});
  Rename(file, "fc.", "head.");
  const NearestNetwork nearest = Nearest(file);
  EXPECT_THAT(NearestText(nearest),
              AllOf(HasSubstr("100 of its 102 tensors have the names of 'resnet18' with classes=3;"),
                    Not(HasSubstr("deeplab"))));
  EXPECT_THAT(DifferenceTexts(nearest.fit),
              ElementsAre("'fc.weight' is missing; 'head.weight' has its shape [3, 512]: rename 'head.' to "
                          "'fc.' in 2 names?"));
}

TEST(NearestText, NamesTorchvisionsTensors) {
  std::vector<TensorEntry> file = FileOf("mobilenet_v2");
  ASSERT_EQ(file.front().name, "features.0.0.weight");
  file.erase(file.begin());
  file.back().shape = {999};
  file.push_back({.name = "ema.decay", .shape = {}, .strides = {}});
  EXPECT_THAT(
      DifferenceTexts(Nearest(file).fit),
      ElementsAre("'features.0.0.weight' [32, 3, 3, 3] is missing",
                  "'classifier.1.bias' is [999] instead of [1000]", "'ema.decay' [] is surplus: remove it"));
}

// wide_resnet50_2 and resnext50_32x4d have the names of resnet50.
TEST(NearestText, VariantsAreNotTakenForTheNetwork) {
  std::vector<TensorEntry> file = FileOf("resnet50");
  for (TensorEntry& entry : file) {
    if (entry.name.starts_with("layer") && entry.name.find(".conv2.") != std::string::npos)
      entry.shape[1] /= 32;
    if (entry.name.starts_with("layer") && entry.name.find(".bn1.") != std::string::npos) entry.shape[0] *= 2;
  }
  const NearestNetwork nearest = Nearest(file);
  EXPECT_THAT(nearest.options, IsEmpty());
  EXPECT_THAT(NearestText(nearest),
              AllOf(HasSubstr("267 of its 267 tensors have the names of 'resnet50'"),
                    HasSubstr("But 80 of them have another shape"), HasSubstr("as a program or an ONNX file"),
                    Not(HasSubstr("--architecture"))));
}

TEST(NearestText, NamesAFewOfMany) {
  std::vector<TensorEntry> file = FileOf("resnet50");
  file.erase(file.begin(), file.begin() + 5);
  for (int i = 0; i < 7; ++i)
    file.push_back({.name = "buffer" + std::to_string(i), .shape = {61}, .strides = {}});
  EXPECT_THAT(
      DifferenceTexts(Nearest(file).fit),
      ElementsAre("'conv1.weight' [64, 3, 7, 7], 'bn1.weight' [64], 'bn1.bias' [64] and 2 more are missing",
                  "'buffer0' [61], 'buffer1' [61], 'buffer2' [61] and 4 more are surplus: remove them"));
}

TEST(NearestText, SeveralNetworksAreNamed) {
  std::vector<TensorEntry> file = FileOf("kanet_kv");
  file.pop_back();
  EXPECT_THAT(NearestText(Nearest(file)),
              AllOf(HasSubstr("'kanet_kv'"), HasSubstr("'kanet_qkv'"), HasSubstr("one of these networks")));
}

TEST(NearestText, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(NearestText(Nearest({})), "");
  EXPECT_THAT(DifferenceTexts({}), IsEmpty());
}

// Names come from the file.
TEST(NearestText, NamesAreMadeSafeForATerminal) {
  std::vector<TensorEntry> file = FileOf("resnet18");
  file.push_back({.name = "\x1b[2J\nroot", .shape = {}, .strides = {}});
  const std::vector<std::string> texts = DifferenceTexts(Nearest(file).fit);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0].find_first_of("\x1b\n"), std::string::npos);
}

}  // namespace
}  // namespace saccade::models
