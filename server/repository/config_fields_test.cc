#include "server/repository/config_fields.h"

#include <fstream>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/config_file.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kArchitecture[] = "parameters { key: \"architecture\" value { string_value: \"sanet\" } }\n";

std::vector<std::string> WarningsOf(absl::string_view text) {
  const auto config = ParseConfig(absl::StrCat(kArchitecture, text), "m/config.pbtxt", "m");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? config->settings.warnings : std::vector<std::string>();
}

TEST(ConfigFieldsTest, EveryFieldOfTheSchemaHasARow) {
  const auto* schema = inference::ModelConfig::descriptor();
  std::set<std::string> rows;
  for (const ConfigField& field : ConfigFields()) EXPECT_TRUE(rows.insert(field.path).second) << field.path;
  for (int i = 0; i < schema->field_count(); ++i)
    EXPECT_EQ(rows.count(schema->field(i)->name()), 1u) << schema->field(i)->name();
}

// Formats a row like docs/compatibility.md: "| `name` | works | ... |".
std::string AsRow(const ConfigField& field) {
  const char* const state = field.support == FieldSupport::kIgnored ? "passed over" : NameOf(field.support);
  return absl::StrCat("| `", field.path, "` | ", state, " | ", field.note, " |");
}

TEST(ConfigFieldsTest, ThePageOfCompatibilityHasTheTable) {
  std::ifstream page(SACCADE_COMPATIBILITY_PAGE);
  ASSERT_TRUE(page.is_open()) << SACCADE_COMPATIBILITY_PAGE;
  std::vector<std::string> found;
  bool is_here = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "## ")) is_here = line == "## Model configuration";
    if (is_here && absl::StartsWith(line, "| `")) found.push_back(line);
  }
  std::vector<std::string> expected;
  for (const ConfigField& field : ConfigFields()) expected.push_back(AsRow(field));
  EXPECT_EQ(found, expected) << "the rows should be:\n" << absl::StrJoin(expected, "\n");
}

TEST(ConfigFieldsTest, EveryRowIsAFieldOfTheSchema) {
  for (const ConfigField& field : ConfigFields()) {
    const auto* message = inference::ModelConfig::descriptor();
    absl::string_view rest = field.path;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('.'), rest.size());
      ASSERT_NE(message, nullptr) << field.path;
      const auto* found = message->FindFieldByName(std::string(rest.substr(0, end)));
      ASSERT_NE(found, nullptr) << field.path;
      message = found->message_type();
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    EXPECT_STRNE(field.note, "") << field.path;
  }
}

TEST(ConfigFieldsTest, WhatChangesNoAnswerIsPassedOverWithAWarning) {
  EXPECT_THAT(WarningsOf(""), IsEmpty());
  EXPECT_THAT(
      WarningsOf("optimization { cuda { graphs: true } }\n"
                 "instance_group { count: 2 rate_limiter { priority: 2 } passive: true }\n"
                 "metric_tags { key: \"a\" value: \"b\" }\n"
                 "cc_model_filenames { key: \"7.5\" value: \"b\" }\n"
                 "model_metrics { }\n"),
      testing::UnorderedElementsAre(
          HasSubstr("m/config.pbtxt:2: optimization: is ignored: saccade selects"),
          HasSubstr("m/config.pbtxt:3: instance_group[0].rate_limiter: is ignored: 'weight'"),
          HasSubstr("m/config.pbtxt:3: instance_group[0].passive: is ignored: passive instances compute"),
          HasSubstr("m/config.pbtxt:4: metric_tags: is ignored"),
          HasSubstr("m/config.pbtxt:5: cc_model_filenames: is ignored"),
          HasSubstr("m/config.pbtxt:6: model_metrics: is ignored")));
}

TEST(ConfigFieldsTest, AFieldWarnsOnceHoweverOftenItStands) {
  EXPECT_THAT(WarningsOf("instance_group { host_policy: \"a\" } instance_group { host_policy: \"b\" }"),
              ElementsAre(HasSubstr("instance_group[0].host_policy: is ignored")));
}

TEST(ConfigFieldsTest, WhatIsRefusedMayStandAtItsDefault) {
  EXPECT_THAT(WarningsOf("model_transaction_policy { decoupled: false } response_cache { enable: true }"),
              IsEmpty());
}

TEST(ConfigFieldsTest, AParameterThatStandsTwiceIsTold) {
  EXPECT_THAT(WarningsOf("parameters { key: \"classes\" value { string_value: \"1\" } }\n"
                         "parameters { key: \"classes\" value { string_value: \"2\" } }\n"),
              ElementsAre(HasSubstr("m/config.pbtxt:3: parameters['classes']: is given more than once")));
}

TEST(ConfigFieldsTest, TheArchitecturesTensorsAreItsOwn) {
  EXPECT_THAT(WarningsOf("input { name: \"x\" data_type: TYPE_FP32 dims: 1 }"),
              ElementsAre(HasSubstr("m/config.pbtxt:2: input: input and output are ignored")));
}

}  // namespace
}  // namespace saccade::server
