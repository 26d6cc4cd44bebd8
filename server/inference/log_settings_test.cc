#include "server/inference/log_settings.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using std::string_view_literals::operator""sv;

TEST(LogSettings, WhatIsNamedChangesAndNothingElse) {
  const auto changed = Changed({.warning = false}, LogFormat::kText,
                               {{"log_info", false},
                                {"log_verbose_level", uint64_t{2}},
                                {"log_format", "ISO8601"sv},
                                {"log_file", ""sv}});
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_FALSE(changed->info);
  EXPECT_FALSE(changed->warning);
  EXPECT_TRUE(changed->error);
  EXPECT_EQ(changed->verbose, 2u);
}

TEST(LogSettings, TheRestIsRefusedByName) {
  const auto refused = [](std::string_view name, const Parameter& value) {
    const absl::Status status = Changed({}, LogFormat::kText, {{name, value}}).status();
    EXPECT_NE(std::string(status.message()).find(name), std::string::npos) << status;
    return status.code();
  };
  EXPECT_EQ(refused("log_info", uint64_t{1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_verbose_level", true), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_verbose_level", int64_t{-1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_verbose_level", uint64_t{1} << 32), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_colour", true), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_file", "/tmp/log"sv), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refused("log_format", "default"sv), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refused("log_format", true), absl::StatusCode::kUnimplemented);
}

TEST(LogSettings, AllAreTold) {
  const NamedParameters told = Described({.info = false, .verbose = 1}, LogFormat::kJson);
  const NamedParameters expected = {{"log_file", ""sv},
                                    {"log_info", false},
                                    {"log_warning", true},
                                    {"log_error", true},
                                    {"log_verbose_level", uint64_t{1}},
                                    {"log_format", "json"sv}};
  EXPECT_EQ(told, expected);
}

}  // namespace
}  // namespace saccade::server
