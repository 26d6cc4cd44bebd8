// Structured logging: a message with fields, as readable text or as one JSON object per line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/logging/log_writer.h"

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

// Sends all later lines to stderr in `format`, starting at `level`, and starts the thread that writes them.
// Call it once, before any other thread starts.
void InitLogging(LogFormat format, LogLevel level);

// The log settings that may change while the daemon runs: which levels are written.
struct LogSettings {
  bool info = true;
  bool warning = true;
  bool error = true;
  // Above 0, debug lines are written as well; higher values have no further effect.
  uint32_t verbose = 0;
};

// Both are thread-safe.
LogSettings CurrentLogSettings();
void ChangeLogSettings(const LogSettings& settings);

// The format passed to InitLogging.
LogFormat CurrentLogFormat();

// Identifies a call in log lines. Empty fields are omitted.
struct LogCall {
  // As sent by the client: any bytes and any length. Log lines contain its first 128 bytes.
  std::string request_id;
  // 32 hexadecimal digits.
  std::string trace_id;
};

// During its lifetime, the log lines of the current thread end with the call's `request_id` and `trace_id`.
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

// The call of the current thread's innermost scope, to be continued on another thread; empty if there is
// none.
LogCall CurrentLogCall();

// Waits for at most `max` until the lines so far are written; false if some are not. Call it before the
// process exits. Thread-safe.
bool FlushLog(absl::Duration max);

// Thread-safe.
LogLosses CurrentLogLosses();

// Logs how many lines were dropped since the last call, once the reader of stderr has caught up. Call it
// periodically, from one thread.
void LogDroppedLines();

// Thread-safe. Writes exactly one line, whatever the values contain, and does not wait for its reader: if
// lines are not read, later ones are dropped and counted.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace saccade::server
