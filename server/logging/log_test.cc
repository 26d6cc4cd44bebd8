#include "server/logging/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace saccade::server {
namespace {

std::string LineOf(LogFormat format, LogLevel level) {
  testing::internal::CaptureStderr();
  InitLogging(format, LogLevel::kInfo);
  Log(level, "model {loaded} \"x\"", {{"model", "a b"}, {"bytes", 12}, {"bad", "it's \xff\n"}});
  EXPECT_TRUE(FlushLog(absl::Seconds(30)));
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

TEST(LogTest, LinesOfACallNameIt) {
  const LogCallScope outer({.request_id = "outer", .trace_id = ""});
  {
    const LogCallScope scope({.request_id = "a\"\n\xff" + std::string(200, 'x'), .trace_id = "0af7"});
    const auto json = nlohmann::json::parse(LineOf(LogFormat::kJson, LogLevel::kInfo));
    const std::string id = json["request_id"];
    // The invalid byte is replaced by U+FFFD.
    EXPECT_EQ(id, "a\"\n\xef\xbf\xbd" + std::string(124, 'x'));
    EXPECT_EQ(json["trace_id"], "0af7");
    EXPECT_EQ(json["model"], "a b");
    EXPECT_EQ(CurrentLogCall().trace_id, "0af7");
  }
  const std::string line = LineOf(LogFormat::kText, LogLevel::kInfo);
  EXPECT_NE(line.find(" request_id=outer\n"), std::string::npos) << line;
  EXPECT_EQ(line.find("trace_id"), std::string::npos) << line;
  std::thread([] { EXPECT_EQ(CurrentLogCall().request_id, ""); }).join();
}

TEST(LogTest, LowerLevelsAreSilent) { EXPECT_EQ(LineOf(LogFormat::kText, LogLevel::kDebug), ""); }

}  // namespace
}  // namespace saccade::server
