#include "server/inference/cached_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CachedOutputsTest : public ::testing::Test {
 protected:
  CachedOutputsTest() {
    program_.outputs = {{.name = "a", .type = DataType::kFp32, .dims = {2}},
                        {.name = "b", .type = DataType::kFp32, .dims = {2}}};
    program_.outputs[1].labels = {"cat", "dog"};
    facts_ = FactsOf(program_);
  }

  static Tensor Made(const std::string& name) {
    static const float kValues[] = {1, 2};
    return {.name = name,
            .type = DataType::kFp32,
            .shape = {1, 2},
            .data = BytePieces({reinterpret_cast<const char*>(kValues), sizeof(kValues)})};
  }

  std::vector<std::string> NamesOf(const std::vector<Tensor>& kept, const std::vector<WantedOutput>& wanted) {
    const auto cut = SelectOutputs(kept, wanted, facts_, /*batched=*/true);
    if (!cut || !cut->ok()) return {"none"};
    std::vector<std::string> names;
    for (const Tensor& tensor : **cut) names.push_back(tensor.name);
    return names;
  }

  ModelSettings program_;
  std::vector<OutputFacts> facts_;
};

TEST_F(CachedOutputsTest, AnswersAreCutFromAll) {
  const std::vector<Tensor> all = {Made("a"), Made("b")};
  EXPECT_THAT(NamesOf(all, {}), ElementsAre("a", "b"));
  EXPECT_THAT(NamesOf(all, {{.name = "b"}}), ElementsAre("b"));
  EXPECT_THAT(NamesOf(all, {{.name = "b"}, {.name = "a"}}), ElementsAre("a", "b")) << "the model's order";
  EXPECT_THAT(NamesOf(all, {{.name = "c"}}), ElementsAre("none"));
}

TEST_F(CachedOutputsTest, ClassesAreMadeOfTheWholeOutput) {
  const auto cut = SelectOutputs({Made("a"), Made("b")}, {{.name = "b", .classes = 1}}, facts_, true);
  ASSERT_TRUE(cut && cut->ok());
  const Tensor& classes = (*cut)->front();
  EXPECT_EQ(classes.type, DataType::kBytes);
  EXPECT_THAT(classes.shape, ElementsAre(1, 1));
  std::string text(classes.data.size(), ' ');
  classes.data.CopyTo(text.data());
  EXPECT_EQ(text.substr(4), "2.000000:1:dog");
}

TEST_F(CachedOutputsTest, WhatIsNotKeptIsNotCut) {
  EXPECT_THAT(NamesOf({Made("a")}, {{.name = "a"}}), ElementsAre("a"));
  EXPECT_THAT(NamesOf({Made("a")}, {{.name = "b"}}), ElementsAre("none"));
  EXPECT_THAT(NamesOf({Made("a")}, {}), ElementsAre("none")) << "b is returned by default";
}

TEST_F(CachedOutputsTest, EntriesGrow) {
  EXPECT_THAT(NamesOf(Union({Made("b")}, {Made("a")}, facts_), {}), ElementsAre("a", "b"));
  EXPECT_EQ(Union({Made("a")}, {Made("a")}, facts_).size(), 1u);
}

TEST_F(CachedOutputsTest, NetworksKeepWhatWasNamedAndProgramsAll) {
  const std::vector<WantedOutput> wanted = {{.name = "b", .classes = 3}, {.name = "b"}};
  EXPECT_TRUE(OutputsToCache(wanted, true).empty());
  const auto whole = OutputsToCache(wanted, false);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].classes, 0);
}

TEST(KeptOutputsOfNetworksTest, MasksAreNotReturnedUnasked) {
  models::Description detector;
  detector.task = models::Task::kDetection;
  const auto facts = FactsOf(detector, ItemsForm::kFlat);
  ASSERT_EQ(facts.size(), 5u);
  EXPECT_TRUE(facts[1].unasked);
  EXPECT_EQ(facts[4].name, "masks");
  EXPECT_FALSE(facts[4].unasked);
}

TEST(KeptOutputsOfNetworksTest, LabelsAreThoseOfOutputsThatCountClasses) {
  models::Description network;
  network.labels = {"cat", "dog"};
  network.task = models::Task::kSegmentation;
  const auto facts = FactsOf(network, ItemsForm::kPadded);
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].name, "label_map");
  EXPECT_THAT(*facts[0].labels, IsEmpty());
  EXPECT_EQ(facts[1].name, "areas");
  EXPECT_EQ(facts[1].labels, &network.labels);
  network.task = models::Task::kDetection;
  for (const OutputFacts& fact : FactsOf(network, ItemsForm::kFlat))
    EXPECT_THAT(*fact.labels, IsEmpty()) << fact.name;
}

}  // namespace
}  // namespace saccade::server
