#include "models/networks/pair_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<std::string, std::string>> Pairs(const WeightsFit& fit) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const RenamedTensor& tensor : fit.renamed) pairs.emplace_back(tensor.expected, tensor.found);
  return pairs;
}

WeightsFit Paired(const std::vector<TensorSpec>& missing, const std::vector<FileTensor>& surplus) {
  WeightsFit fit;
  PairTensors(missing, surplus, fit);
  return fit;
}

TEST(PairTensors, PairsByShapeAndTheLastPartOfTheName) {
  const WeightsFit fit = Paired({{"fc.weight", {3, 8}}, {"fc.bias", {3}}},
                                {{"head.bias", {3}}, {"head.weight", {3, 8}}, {"scale.gain", {3}}});
  EXPECT_THAT(Pairs(fit), ElementsAre(Pair("fc.weight", "head.weight"), Pair("fc.bias", "head.bias")));
  ASSERT_EQ(fit.surplus.size(), 1U);
  EXPECT_EQ(fit.surplus[0].name, "scale.gain");
}

TEST(PairTensors, OtherShapesAreNoPairs) {
  const WeightsFit fit = Paired({{"fc.weight", {3, 8}}}, {{"head.weight", {3, 9}}});
  EXPECT_THAT(fit.renamed, IsEmpty());
  EXPECT_EQ(fit.missing.size(), 1U);
  EXPECT_EQ(fit.surplus.size(), 1U);
}

// The tenth comes after the second, which sorted names do not say.
TEST(PairTensors, NumbersAreInTheirOrder) {
  std::vector<TensorSpec> missing;
  for (int i = 0; i < 12; ++i) missing.push_back({"blocks." + std::to_string(i) + ".weight", {4}});
  const WeightsFit fit = Paired(missing, {{"trunk.1.weight", {4}},
                                          {"trunk.10.weight", {4}},
                                          {"trunk.11.weight", {4}},
                                          {"trunk.12.weight", {4}},
                                          {"trunk.2.weight", {4}},
                                          {"trunk.3.weight", {4}},
                                          {"trunk.4.weight", {4}},
                                          {"trunk.5.weight", {4}},
                                          {"trunk.6.weight", {4}},
                                          {"trunk.7.weight", {4}},
                                          {"trunk.8.weight", {4}},
                                          {"trunk.9.weight", {4}}});
  ASSERT_EQ(fit.renamed.size(), 12U);
}

TEST(PairTensors, CommonEndingsComeBeforeTheOrder) {
  const WeightsFit fit =
      Paired({{"stem.norm.weight", {4}}, {"body.a.norm.weight", {4}}, {"tail.weight", {2}}},
             {{"core.a.norm.weight", {4}}, {"entry.norm.weight", {4}}});
  EXPECT_THAT(Pairs(fit), ElementsAre(Pair("stem.norm.weight", "entry.norm.weight"),
                                      Pair("body.a.norm.weight", "core.a.norm.weight")));
  EXPECT_EQ(fit.missing.size(), 1U);
}

// Three tensors of the file fit equally well, so none is paired.
TEST(PairTensors, WhatIsNotToldApartIsNotPaired) {
  const WeightsFit fit =
      Paired({{"a.weight", {4}}}, {{"x.weight", {4}}, {"y.weight", {4}}, {"z.weight", {4}}});
  EXPECT_THAT(fit.renamed, IsEmpty());
  EXPECT_EQ(fit.surplus.size(), 3U);
}

TEST(PairTensors, NothingIsPairedWithNothing) {
  const WeightsFit fit = Paired({}, {});
  EXPECT_THAT(fit.renamed, IsEmpty());
  EXPECT_THAT(fit.missing, IsEmpty());
}

}  // namespace
}  // namespace saccade::models
