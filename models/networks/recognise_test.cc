#include "models/networks/recognise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/networks/testing/network_files.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FileOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Rename;

std::string Error(const std::vector<TensorEntry>& file) {
  try {
    return "recognised as " + Recognise(file).architecture;
  } catch (const LoadError& error) {
    return error.what();
  }
}

TEST(Recognise, TorchvisionsNetworks) {
  for (const std::string architecture : {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
                                         "mobilenet_v2", "maskrcnn_resnet50_fpn"}) {
    const Recognised found = Recognise(FileOf(architecture, {{"classes", "37"}}));
    EXPECT_EQ(found.architecture, architecture);
    EXPECT_EQ(found.classes, 37);
    EXPECT_EQ(found.options, (Options{{"classes", "37"}}));
  }
}

TEST(Recognise, SaysWhatWrappersPutBeforeTheNames) {
  std::vector<TensorEntry> file = FileOf("resnet18");
  Rename(file, "", "model.");
  const Recognised found = Recognise(file);
  EXPECT_THAT(found.options, IsEmpty());
  EXPECT_EQ(found.classes, 1000);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("all 102 names carry the prefix 'model.'")));
}

// The daemon would not load such a file.
TEST(Recognise, WhatTheDaemonWouldNotLoadIsRejected) {
  std::vector<TensorEntry> surplus = FileOf("resnet18");
  surplus.push_back({.name = "loss.weight", .shape = {3}, .strides = {}});
  EXPECT_THAT(Error(surplus), AllOf(HasSubstr("no network has exactly its 103 tensors"),
                                    HasSubstr("'loss.weight' [3] is surplus: remove it")));
  std::vector<TensorEntry> missing = FileOf("resnet50");
  missing.erase(missing.begin());
  EXPECT_THAT(Error(missing), HasSubstr("'conv1.weight' [64, 3, 7, 7] is missing"));
  std::vector<TensorEntry> prefixed = FileOf("resnet50");
  Rename(prefixed, "", "backbone.");
  EXPECT_THAT(Error(prefixed), HasSubstr("name.removeprefix(\"backbone.\")"));
  std::vector<TensorEntry> wide = FileOf("resnet50");
  for (TensorEntry& entry : wide) {
    if (entry.name == "layer1.0.conv1.weight") entry.shape = {128, 64, 1, 1};
  }
  EXPECT_THAT(Error(wide), HasSubstr("'layer1.0.conv1.weight' is [128, 64, 1, 1] instead of [64, 64, 1, 1]"));
}

TEST(Recognise, TwinsAreNotGuessed) {
  EXPECT_THAT(Error(FileOf("kanet_qkv")),
              AllOf(HasSubstr("are those of 'attnnet', 'attnnet_pool', 'kanet_kv' or 'kanet_qkv'"),
                    HasSubstr("--architecture")));
}

TEST(Recognise, SaysThatNothingIsNear) {
  EXPECT_THAT(Error({{.name = "encoder.weight", .shape = {3, 0}, .strides = {}}}),
              AllOf(HasSubstr("'encoder.weight' [3, 0]"), HasSubstr("none is near"),
                    HasSubstr("--architecture"), HasSubstr("resnet18")));
  EXPECT_THAT(Error({}), HasSubstr("its 0 tensors"));
}

TEST(RecogniseAs, FindsTheOptionsOfTheNamedNetwork) {
  const Recognised found =
      RecogniseAs("kanet_qkv", FileOf("kanet_qkv", {{"classes", "4"}, {"width", "0.5"}}));
  EXPECT_EQ(found.architecture, "kanet_qkv");
  EXPECT_EQ(found.options, (Options{{"classes", "4"}, {"width", "0.5"}}));
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(RecogniseAs, SaysWhatDoesNotFit) {
  const Recognised found = RecogniseAs("sanet", FileOf("resnet18"));
  EXPECT_EQ(found.architecture, "sanet");
  EXPECT_THAT(found.notes, AllOf(Contains(HasSubstr("do not fit 'sanet'")), Contains(HasSubstr("missing"))));
  EXPECT_THROW(RecogniseAs("nonet", FileOf("resnet18")), LoadError);
}

}  // namespace
}  // namespace saccade::models
