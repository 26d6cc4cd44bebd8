// Structured log lines: a message and its fields, as text for people or one JSON object a line for machines.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

struct LogField {
  LogField(absl::string_view field, absl::string_view text) : name(field), value(text) {}
  LogField(absl::string_view field, const absl::Status& status) : name(field), value(status.ToString()) {}
  LogField(absl::string_view field, absl::Duration duration)
      : name(field), value(absl::FormatDuration(duration)) {}
  template <typename Number>
  LogField(absl::string_view field, Number number)
    requires std::is_arithmetic_v<Number>
      : name(field), value(absl::StrCat(number)), is_number(true) {}

  absl::string_view name;
  std::string value;
  bool is_number = false;
};

// Sends every later line to stderr in this format, from this level on. Call once, before threads start.
void InitLogging(LogFormat format, LogLevel level);

// What of the log may change while the daemon runs: which lines are written.
struct LogSettings {
  bool info = true;
  bool warning = true;
  bool error = true;
  // Above 0, debug lines as well; they know no further levels.
  uint32_t verbose = 0;
};

// Both thread-safe.
LogSettings CurrentLogSettings();
void ChangeLogSettings(const LogSettings& settings);

// As InitLogging set it.
LogFormat CurrentLogFormat();

// A call as lines name it. What is empty is not told.
struct LogCall {
  // The client's own, of whatever bytes and length.
  std::string request_id;
  // 32 hexadecimal digits.
  std::string trace_id;
};

// While it lives, the lines of its thread are about a call, and end with its `request_id` and `trace_id`.
class LogCallScope {
 public:
  explicit LogCallScope(LogCall call);
  ~LogCallScope();
  LogCallScope(const LogCallScope&) = delete;
  LogCallScope& operator=(const LogCallScope&) = delete;

 private:
  const LogCall call_;
  const LogCall* const outer_;
};

// That of this thread, for whoever goes on with it on another; empty if there is none.
LogCall CurrentLogCall();

// Thread-safe; one line, whatever the values hold.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace saccade::server
