#include "server/logging/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {
namespace {

// Written once, by InitLogging, before any thread starts.
LogFormat g_format = LogFormat::kText;

// Maximum bytes of a client's request id in a log line.
constexpr size_t kMaxRequestId = 128;

thread_local const LogCall* t_call = nullptr;

// Never destroyed, because any thread may log while the process exits.
LogWriter& Writer() {
  static LogWriter* const writer = new LogWriter({});
  return *writer;
}

// Lines dropped so far that a line of the log has told of.
std::atomic<uint64_t> g_told = 0;

// Makes the text of lines and gives it to the writer.
class WriterSink : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    Writer().Write(std::string(text.data(), text.size()));
  }
  void flush_() override {}
};

// Separate atomics suffice, because a line depends on one level only.
std::atomic<bool> g_info = true;
std::atomic<bool> g_warning = true;
std::atomic<bool> g_error = true;
std::atomic<uint32_t> g_verbose = 0;

bool IsWritten(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return g_verbose > 0;
    case LogLevel::kInfo:
      return g_info;
    case LogLevel::kWarning:
      return g_warning;
    case LogLevel::kError:
      break;
  }
  return g_error;
}

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

// Replaces invalid UTF-8, so that no value can break the JSON of the line.
std::string JsonString(absl::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Fields that identify the call of the current thread.
std::vector<LogField> CallFields() {
  std::vector<LogField> fields;
  if (t_call == nullptr) return fields;
  if (!t_call->request_id.empty()) fields.emplace_back("request_id", t_call->request_id);
  if (!t_call->trace_id.empty()) fields.emplace_back("trace_id", t_call->trace_id);
  return fields;
}

std::string JsonFields(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line = absl::StrCat("\"message\":", JsonString(message));
  const auto add = [&line](const LogField& field) {
    absl::StrAppend(&line, ",", JsonString(field.name), ":",
                    field.is_number ? field.value : JsonString(field.value));
  };
  for (const LogField& field : fields) add(field);
  for (const LogField& field : CallFields()) add(field);
  return line;
}

// Quotes a value if its end would be ambiguous otherwise.
std::string TextValue(const std::string& value) {
  const bool plain = value.find_first_of(" \"\n=") == std::string::npos && !value.empty();
  if (plain) return absl::CEscape(value);
  // CEscape also escapes single quotes, which need no backslash within double quotes.
  return absl::StrCat("\"", absl::StrReplaceAll(absl::CEscape(value), {{"\\'", "'"}}), "\"");
}

std::string TextFields(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line(message);
  const auto add = [&line](const LogField& field) {
    absl::StrAppend(&line, " ", field.name, "=", TextValue(field.value));
  };
  for (const LogField& field : fields) add(field);
  for (const LogField& field : CallFields()) add(field);
  return line;
}

LogCall Shortened(LogCall call) {
  if (call.request_id.size() > kMaxRequestId) call.request_id.resize(kMaxRequestId);
  return call;
}

}  // namespace

LogCallScope::LogCallScope(LogCall call) : call_(Shortened(std::move(call))), outer_(t_call) {
  t_call = &call_;
}

LogCallScope::~LogCallScope() { t_call = outer_; }

LogCall CurrentLogCall() { return t_call == nullptr ? LogCall() : *t_call; }

void InitLogging(LogFormat format, LogLevel level) {
  g_format = format;
  ChangeLogSettings({.info = level <= LogLevel::kInfo,
                     .warning = level <= LogLevel::kWarning,
                     .error = true,
                     .verbose = level == LogLevel::kDebug ? 1U : 0U});
  auto logger = std::make_shared<spdlog::logger>("saccaded", std::make_shared<WriterSink>());
  logger->set_level(spdlog::level::trace);
  // The default handler writes to stderr itself, and would wait for its reader.
  logger->set_error_handler([](const std::string&) {});
  logger->set_pattern(format == LogFormat::kJson
                          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l","thread":%t,%v})"
                          : "%Y-%m-%dT%H:%M:%S.%eZ %L %v",
                      spdlog::pattern_time_type::utc);
  spdlog::set_default_logger(std::move(logger));
}

LogSettings CurrentLogSettings() {
  return {.info = g_info, .warning = g_warning, .error = g_error, .verbose = g_verbose};
}

void ChangeLogSettings(const LogSettings& settings) {
  g_info = settings.info;
  g_warning = settings.warning;
  g_error = settings.error;
  g_verbose = settings.verbose;
}

LogFormat CurrentLogFormat() { return g_format; }

bool FlushLog(absl::Duration max) { return Writer().Flush(max); }

LogLosses CurrentLogLosses() { return Writer().losses(); }

void LogDroppedLines() {
  const LogLosses losses = Writer().losses();
  const uint64_t told = g_told;
  if (losses.queue_full == told || !Writer().Flush(absl::ZeroDuration())) return;
  g_told = losses.queue_full;
  Log(LogLevel::kWarning, "log lines were dropped, because the reader of stderr did not keep up",
      {{"lines", losses.queue_full - told}});
}

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  if (!IsWritten(level)) return;
  try {
    // The text is an argument, not the format string, because it may contain braces.
    spdlog::default_logger_raw()->log(
        ToSpdlog(level), "{}",
        g_format == LogFormat::kJson ? JsonFields(message, fields) : TextFields(message, fields));
  } catch (const std::exception&) {
    // Errors are logged where an exception was caught; another one would end the thread.
  }
}

}  // namespace saccade::server
