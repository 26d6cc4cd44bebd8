#include "server/logging/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace saccade::server {
namespace {

std::string LineOf(LogFormat format, LogLevel level) {
  testing::internal::CaptureStderr();
  InitLogging(format, LogLevel::kInfo);
  Log(level, "model {loaded} \"x\"", {{"model", "a b"}, {"bytes", 12}, {"bad", "it's \xff\n"}});
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, JsonLineParsesWhateverTheValuesHold) {
  const std::string line = LineOf(LogFormat::kJson, LogLevel::kWarning);
  ASSERT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["message"], "model {loaded} \"x\"");
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["model"], "a b");
  EXPECT_EQ(json["bytes"], 12);
}

TEST(LogTest, TextLineQuotesAndEscapes) {
  const std::string line = LineOf(LogFormat::kText, LogLevel::kInfo);
  EXPECT_NE(line.find("model=\"a b\" bytes=12 bad=\"it's \\377\\n\"\n"), std::string::npos) << line;
}

TEST(LogTest, LowerLevelsAreSilent) { EXPECT_EQ(LineOf(LogFormat::kText, LogLevel::kDebug), ""); }

}  // namespace
}  // namespace saccade::server
