#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/config_file.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

absl::StatusOr<ConfigFile> Parse(absl::string_view batching) {
  return ParseConfig(absl::StrCat("parameters { key: \"architecture\" value { string_value: \"sanet\" } }\n",
                                  "max_batch_size: 16\n", batching),
                     "m/config.pbtxt", "m");
}

ModelSettings SettingsOf(absl::string_view fields) {
  auto config = Parse(absl::StrCat("dynamic_batching { ", fields, " }"));
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? config->settings : ModelSettings();
}

std::string ErrorOf(absl::string_view fields) {
  const auto config = Parse(absl::StrCat("dynamic_batching { ", fields, " }"));
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << fields;
  EXPECT_THAT(std::string(config.status().message()), StartsWith("m/config.pbtxt:3: dynamic_batching."));
  return std::string(config.status().message());
}

TEST(BatchingConfigTest, WithoutFieldsTheDaemonDecides) {
  for (const char* batching : {"", "dynamic_batching { }"}) {
    const auto config = Parse(batching);
    ASSERT_TRUE(config.ok()) << config.status();
    const BatcherOptions& options = config->settings.batching;
    EXPECT_EQ(options.max_batch_size, 16);
    EXPECT_EQ(options.max_queue_delay, BatcherOptions().max_queue_delay);
    EXPECT_EQ(options.max_queue_size, 0) << "the daemon's bound";
    EXPECT_THAT(options.preferred_batch_sizes, IsEmpty());
    EXPECT_EQ(options.priority_levels, 0);
    EXPECT_EQ(options.default_policy.timeout, absl::InfiniteDuration());
    EXPECT_FALSE(options.default_policy.allow_timeout_override);
    EXPECT_FALSE(config->settings.preserve_ordering);
  }
}

TEST(BatchingConfigTest, EveryFieldArrives) {
  const ModelSettings settings = SettingsOf(R"pb(
    preferred_batch_size: [ 8, 4, 16, 4 ]
    max_queue_delay_microseconds: 500
    priority_levels: 3
    default_priority_level: 2
    default_queue_policy {
      timeout_action: DELAY
      default_timeout_microseconds: 250000
      allow_timeout_override: true
      max_queue_size: 64
    }
    priority_queue_policy {
      key: 1
      value { default_timeout_microseconds: 1000 max_queue_size: 32 }
    }
  )pb");
  const BatcherOptions& options = settings.batching;
  EXPECT_THAT(options.preferred_batch_sizes, ElementsAre(4, 8, 16));
  EXPECT_EQ(options.max_queue_delay, absl::Microseconds(500));
  EXPECT_EQ(options.priority_levels, 3);
  EXPECT_EQ(options.default_priority_level, 2);
  EXPECT_EQ(options.default_policy.timeout_action, QueuePolicy::TimeoutAction::kDelay);
  EXPECT_EQ(options.default_policy.timeout, absl::Milliseconds(250));
  EXPECT_TRUE(options.default_policy.allow_timeout_override);
  EXPECT_EQ(options.default_policy.max_queue_size, 64);
  ASSERT_EQ(options.level_policies.size(), 1u);
  const QueuePolicy& first = options.level_policies.at(1);
  EXPECT_EQ(first.timeout_action, QueuePolicy::TimeoutAction::kReject);
  EXPECT_EQ(first.timeout, absl::Milliseconds(1));
  EXPECT_FALSE(first.allow_timeout_override);
  EXPECT_EQ(first.max_queue_size, 32);
  EXPECT_EQ(options.max_queue_size, 16 * (32 + 64 + 64)) << "what the levels may hold together";
}

TEST(BatchingConfigTest, AnExplicitZeroNeverWaits) {
  EXPECT_EQ(SettingsOf("max_queue_delay_microseconds: 0").batching.max_queue_delay, absl::ZeroDuration());
}

TEST(BatchingConfigTest, ALevelWithoutABoundLeavesTheWholeToTheDaemon) {
  EXPECT_EQ(SettingsOf("default_queue_policy { max_queue_size: 64 }").batching.max_queue_size, 64 * 16);
  EXPECT_EQ(SettingsOf("priority_levels: 2 default_priority_level: 1 "
                       "priority_queue_policy { key: 2 value { max_queue_size: 5 } }")
                .batching.max_queue_size,
            0);
}

TEST(BatchingConfigTest, PreferredSizesFitABatch) {
  for (const char* size : {"0", "-2", "17"}) {
    EXPECT_THAT(
        ErrorOf(absl::StrCat("preferred_batch_size: [4, ", size, "]")),
        HasSubstr(absl::StrCat("preferred_batch_size: is ", size, ", expected 1 to 16, the max_batch_size")));
  }
}

TEST(BatchingConfigTest, LevelsNeedADefaultAmongThem) {
  EXPECT_THAT(ErrorOf("priority_levels: 3"), HasSubstr("default_priority_level: is 0, expected 1 to 3"));
  EXPECT_THAT(ErrorOf("priority_levels: 3 default_priority_level: 4"),
              HasSubstr("default_priority_level: is 4, expected 1 to 3"));
  EXPECT_THAT(ErrorOf("priority_levels: 1001 default_priority_level: 1"),
              HasSubstr("priority_levels: is 1001, expected 1 to 1000"));
  for (const char* level : {"0", "4"}) {
    EXPECT_THAT(
        ErrorOf(absl::StrCat("priority_levels: 3 default_priority_level: 1 priority_queue_policy { key: ",
                             level, " value { } }")),
        HasSubstr(absl::StrCat("priority_queue_policy['", level, "']: is ", level, ", expected 1 to 3")));
  }
}

TEST(BatchingConfigTest, WhatNeedsLevelsSaysSo) {
  EXPECT_THAT(ErrorOf("default_priority_level: 1"),
              HasSubstr("default_priority_level: needs priority_levels"));
  EXPECT_THAT(ErrorOf("priority_queue_policy { key: 1 value { } }"),
              HasSubstr("priority_queue_policy: needs priority_levels"));
}

TEST(BatchingConfigTest, OrderIsNotKeptWhereOthersMayOvertake) {
  EXPECT_TRUE(SettingsOf("preserve_ordering: true").preserve_ordering);
  EXPECT_TRUE(
      SettingsOf("preserve_ordering: true priority_levels: 1 default_priority_level: 1").preserve_ordering);
  EXPECT_TRUE(
      SettingsOf("preserve_ordering: true default_queue_policy { timeout_action: DELAY }").preserve_ordering)
      << "nothing is ever delayed without a timeout";
  EXPECT_THAT(ErrorOf("preserve_ordering: true priority_levels: 2 default_priority_level: 1"),
              HasSubstr("preserve_ordering: is true together with priority_levels: 2"));
  const std::string delay = "{ timeout_action: DELAY default_timeout_microseconds: 5 }";
  EXPECT_THAT(ErrorOf(absl::StrCat("preserve_ordering: true default_queue_policy ", delay)),
              HasSubstr("preserve_ordering: is true together with timeout_action: DELAY"));
  EXPECT_THAT(ErrorOf(absl::StrCat("preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
                                   "priority_queue_policy { key: 1 value ",
                                   delay, " }")),
              HasSubstr("preserve_ordering: is true together with timeout_action: DELAY"));
}

TEST(BatchingConfigTest, TimesAreBounded) {
  EXPECT_THAT(ErrorOf("max_queue_delay_microseconds: 18446744073709551615"),
              HasSubstr("max_queue_delay_microseconds: is 18446744073709551615, expected 0 to 60000000"));
  EXPECT_THAT(ErrorOf("default_queue_policy { default_timeout_microseconds: 3600000001 }"),
              HasSubstr("default_queue_policy.default_timeout_microseconds: is 3600000001, expected 0 to "
                        "3600000000"));
  EXPECT_THAT(ErrorOf("priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 2 value { "
                      "default_timeout_microseconds: 3600000001 } }"),
              HasSubstr("priority_queue_policy['2'].default_timeout_microseconds: is 3600000001"));
}

}  // namespace
}  // namespace saccade::server
