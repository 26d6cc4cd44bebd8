#include "server/protocols/inference/model_config.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

ModelSettings Settings(const inference::ModelConfig& read) {
  ModelSettings settings;
  settings.name = std::string("m");
  settings.instances = 2;
  settings.config = read.SerializeAsString();
  return settings;
}

ModelInterface Detector() {
  return {.name = "m",
          .versions = {1},
          .platform = "saccade",
          .inputs = {{.name = "image", .type = DataType::kBytes, .shape = {-1, 1}}},
          .outputs = {{.name = "num_detections", .type = DataType::kInt64, .shape = {-1}},
                      {.name = "boxes", .type = DataType::kFp32, .shape = {-1, -1, 4}}}};
}

TEST(ModelConfig, WhatTheFileLeavesOutIsCompleted) {
  inference::ModelConfig read;
  read.set_name("m");
  read.set_max_batch_size(8);
  const auto config = ConfigOf(Settings(read), Detector());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->max_batch_size(), 8);
  ASSERT_EQ(config->input_size(), 1);
  EXPECT_EQ(config->input(0).data_type(), inference::TYPE_STRING);
  EXPECT_EQ(config->input(0).dims_size(), 1);
  EXPECT_FALSE(config->input(0).has_reshape());
  ASSERT_EQ(config->output_size(), 2);
  EXPECT_EQ(config->output(0).data_type(), inference::TYPE_INT64);
  EXPECT_EQ(config->output(0).dims(0), 1);
  EXPECT_TRUE(config->output(0).has_reshape());
  EXPECT_EQ(config->output(0).reshape().shape_size(), 0);
  EXPECT_EQ(config->output(1).dims_size(), 2);
  EXPECT_EQ(config->version_policy().latest().num_versions(), 1u);
  EXPECT_TRUE(config->has_dynamic_batching());
  ASSERT_EQ(config->instance_group_size(), 1);
  EXPECT_EQ(config->instance_group(0).count(), 2);
  EXPECT_EQ(config->instance_group(0).kind(), inference::ModelInstanceGroup::KIND_CPU);
}

TEST(ModelConfig, WhatTheFileSaysStands) {
  inference::ModelConfig read;
  read.set_name("m");
  read.add_input()->set_name("x");
  read.add_output()->set_name("y");
  read.mutable_version_policy()->mutable_all();
  read.mutable_dynamic_batching()->set_preserve_ordering(true);
  read.add_instance_group()->set_count(5);
  const auto config = ConfigOf(Settings(read), Detector());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->SerializeAsString(), read.SerializeAsString());
}

TEST(ModelConfig, WhatHasNoBatchHasAllItsExtents) {
  ModelSettings settings = Settings({});
  settings.has_batch_dimension = false;
  const auto config = ConfigOf(settings, Detector());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->input(0).dims_size(), 2);
  EXPECT_FALSE(config->has_dynamic_batching());
  EXPECT_EQ(config->instance_group(0).kind(), inference::ModelInstanceGroup::KIND_CPU);
}

TEST(ModelConfig, AnEnsembleHasNoInstances) {
  ModelSettings settings = Settings({});
  settings.backend = Backend::kEnsemble;
  const auto config = ConfigOf(settings, Detector());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->instance_group_size(), 0);
}

}  // namespace
}  // namespace saccade::server
