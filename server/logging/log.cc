#include "server/logging/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {
namespace {

// Set once by InitLogging.
LogFormat g_format = LogFormat::kText;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Replaces what is not UTF-8, so that no value can break the line's JSON.
std::string JsonString(absl::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonFields(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line = absl::StrCat("\"message\":", JsonString(message));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, ",", JsonString(field.name), ":",
                    field.is_number ? field.value : JsonString(field.value));
  }
  return line;
}

// Quoted where a reader or a parser could not tell where it ends.
std::string TextValue(const std::string& value) {
  const bool plain = value.find_first_of(" \"\n=") == std::string::npos && !value.empty();
  if (plain) return absl::CEscape(value);
  // Between double quotes a single one needs no backslash.
  return absl::StrCat("\"", absl::StrReplaceAll(absl::CEscape(value), {{"\\'", "'"}}), "\"");
}

std::string TextFields(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line(message);
  for (const LogField& field : fields) absl::StrAppend(&line, " ", field.name, "=", TextValue(field.value));
  return line;
}

}  // namespace

void InitLogging(LogFormat format, LogLevel level) {
  g_format = format;
  auto logger =
      std::make_shared<spdlog::logger>("saccaded", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::trace);
  logger->set_pattern(format == LogFormat::kJson
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l","thread":%t,%v})"
                          : "%Y-%m-%dT%H:%M:%S.%eZ %L %v",
                      spdlog::pattern_time_type::utc);
  spdlog::set_default_logger(std::move(logger));
}

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  const auto spdlog_level = ToSpdlog(level);
  if (!logger->should_log(spdlog_level)) return;
  // Handed over as an argument: the text may hold braces.
  logger->log(spdlog_level, "{}",
              g_format == LogFormat::kJson ? JsonFields(message, fields) : TextFields(message, fields));
}

}  // namespace saccade::server
