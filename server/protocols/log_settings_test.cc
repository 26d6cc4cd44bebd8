#include "server/protocols/log_settings.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

inference::LogSettingsRequest Request() { return {}; }

TEST(LogSettings, WhatIsNamedChangesAndNothingElse) {
  auto request = Request();
  (*request.mutable_settings())["log_info"].set_bool_param(false);
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(2);
  (*request.mutable_settings())["log_format"].set_string_param("ISO8601");
  const auto changed = Changed({.warning = false}, LogFormat::kText, request);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_FALSE(changed->info);
  EXPECT_FALSE(changed->warning);
  EXPECT_TRUE(changed->error);
  EXPECT_EQ(changed->verbose, 2u);
}

TEST(LogSettings, TheRestIsRefusedByName) {
  const auto refused = [](const char* name, auto set) {
    auto request = Request();
    set((*request.mutable_settings())[name]);
    const absl::Status status = Changed({}, LogFormat::kText, request).status();
    EXPECT_NE(status.message().find(name), absl::string_view::npos) << status;
    return status.code();
  };
  using Value = inference::LogSettingsRequest::SettingValue;
  EXPECT_EQ(refused("log_info", [](Value& value) { value.set_uint32_param(1); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_verbose_level", [](Value& value) { value.set_bool_param(true); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_colour", [](Value& value) { value.set_bool_param(true); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("log_file", [](Value& value) { value.set_string_param("/tmp/log"); }),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refused("log_format", [](Value& value) { value.set_string_param("default"); }),
            absl::StatusCode::kUnimplemented);
}

TEST(LogSettings, AllAreTold) {
  inference::LogSettingsResponse message;
  ToMessage({.info = false, .verbose = 1}, LogFormat::kJson, &message);
  EXPECT_EQ(message.settings_size(), 6);
  EXPECT_FALSE(message.settings().at("log_info").bool_param());
  EXPECT_TRUE(message.settings().at("log_error").bool_param());
  EXPECT_EQ(message.settings().at("log_verbose_level").uint32_param(), 1u);
  EXPECT_EQ(message.settings().at("log_format").string_param(), "json");
}

}  // namespace
}  // namespace saccade::server
