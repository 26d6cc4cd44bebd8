#include "models/networks/known_tensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/api/error.h"
#include "models/api/registry.h"

namespace saccade::models {
namespace {

std::vector<std::string> NamesIn(const NetworkTensors& tensors) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : tensors.expected) names.push_back(spec.name);
  return names;
}

TEST(KnownTensors, DefaultOptionsAreListedOnceInTheProcess) {
  KnownTensors one, other;
  for (const std::string& architecture : Architectures()) {
    const NetworkTensors& tensors = one.Of(architecture, {});
    EXPECT_EQ(NamesIn(tensors), NamesIn(TensorsOf(architecture, {}))) << architecture;
    EXPECT_EQ(&one.Of(architecture, {}), &tensors);
    EXPECT_EQ(&other.Of(architecture, {}), &tensors);
  }
}

TEST(KnownTensors, OtherOptionsAreListedOnceForAnObject) {
  KnownTensors one, other;
  const Options options = {{"classes", "7"}};
  const NetworkTensors& tensors = one.Of("resnet18", options);
  EXPECT_EQ(tensors.expected.back().shape, std::vector<int64_t>{7});
  EXPECT_EQ(&one.Of("resnet18", options), &tensors);
  EXPECT_NE(&other.Of("resnet18", options), &tensors);
  EXPECT_NE(one.Of("resnet18", {}).expected.back().shape, tensors.expected.back().shape);
}

TEST(KnownTensors, WhatCannotBeListedFailsEachTime) {
  KnownTensors tensors;
  for (int time = 0; time < 2; ++time) {
    EXPECT_THROW(tensors.Of("resnet19", {}), LoadError);
    EXPECT_THROW(tensors.Of("resnet18", {{"classes", "none"}}), LoadError);
  }
}

}  // namespace
}  // namespace saccade::models
