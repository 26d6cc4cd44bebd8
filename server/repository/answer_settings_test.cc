#include "server/repository/answer_settings.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace saccade::server {
namespace {

ModelSettings Settings() {
  ModelSettings settings;
  settings.name = "detector";
  settings.architecture = "scnet";
  settings.options = {{"classes", "5"}, {"score_threshold", "0.1"}};
  settings.labels = {"a", "b"};
  settings.outputs = {{.name = "logits", .dims = {5}}};
  return settings;
}

TEST(AnswerSettingsTest, WhatChangesAnswersChangesTheText) {
  const std::vector<std::function<void(ModelSettings&)>> changes = {
      [](ModelSettings&) {},
      [](ModelSettings& s) { s.backend = Backend::kPytorch; },
      [](ModelSettings& s) { s.architecture = "sanet"; },
      [](ModelSettings& s) { s.options["classes"] = "6"; },
      [](ModelSettings& s) { s.options["score_threshold"] = "0.2"; },
      [](ModelSettings& s) { s.options.erase("score_threshold"); },
      [](ModelSettings& s) { s.labels = {"b", "a"}; },
      [](ModelSettings& s) { s.labels = {"a\nlabel b"}; },
      [](ModelSettings& s) { s.pictures_text = "{}"; },
      [](ModelSettings& s) { s.inputs = s.outputs; },
      [](ModelSettings& s) { s.outputs[0].dims = {6}; },
      [](ModelSettings& s) { s.outputs[0].reshape = std::vector<int64_t>{5, 1}; },
      [](ModelSettings& s) { s.outputs[0].type = DataType::kFp16; },
      [](ModelSettings& s) { s.outputs[0].labels = {"a"}; },
      [](ModelSettings& s) { s.has_batch_dimension = false; },
      [](ModelSettings& s) { s.tiles = {.size = 640, .overlap = 64}; },
      [](ModelSettings& s) { s.items = ItemsForm::kFlat; },
      [](ModelSettings& s) { s.strict_output_shapes = true; }};
  std::set<std::string> texts;
  for (const auto& change : changes) {
    ModelSettings settings = Settings();
    change(settings);
    texts.insert(AnswerSettings(settings));
  }
  EXPECT_EQ(texts.size(), changes.size());
}

TEST(AnswerSettingsTest, WhatOnlyChangesWhenAndWhereChangesNothing) {
  ModelSettings settings = Settings();
  settings.name = "another";
  settings.instances = 4;
  settings.pin = true;
  settings.attest = true;
  settings.drift_window = 1000;
  settings.response_cache = true;
  settings.batching.max_batch_size = 7;
  settings.version_labels = {{"stable", 3}};
  EXPECT_EQ(AnswerSettings(settings), AnswerSettings(Settings()));
}

TEST(AnswerSettingsTest, TheTextIsAsDocumented) {
  EXPECT_EQ(
      AnswerSettings(Settings()),
      "backend saccade\narchitecture scnet\noption classes\nvalue 5\noption score_threshold\nvalue 0.1\n"
      "label a\nlabel b\npictures \noutput logits\ntype FP32\ndims 5\nformat 0\noptional false\n"
      "batch_dimension true\ntiles 0:0\nitems padded\nstrict_output_shapes false\n");
}

}  // namespace
}  // namespace saccade::server
