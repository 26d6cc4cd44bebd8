#include "server/inference/log_settings.h"

#include <limits>
#include <string>

#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

// Text lines have ISO 8601 times, which is one of Triton's formats; JSON is an extension.
std::string_view NameOf(LogFormat format) { return format == LogFormat::kJson ? "json" : "ISO8601"; }

absl::Status Set(absl::string_view name, const Parameter& value, bool* to) {
  const auto* flag = std::get_if<bool>(&value);
  if (flag == nullptr) return Invalid(name, "expected a boolean");
  *to = *flag;
  return absl::OkStatus();
}

absl::Status SetVerbose(absl::string_view name, const Parameter& value, uint32_t* to) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const auto* level = std::get_if<uint64_t>(&value);
  if (level == nullptr || *level > kMax)
    return Invalid(name, absl::StrCat("expected an integer, 0 to ", kMax));
  *to = static_cast<uint32_t>(*level);
  return absl::OkStatus();
}

// A setting that cannot be changed may be set to its current value.
absl::Status Keep(absl::string_view name, const Parameter& value, std::string_view now,
                  absl::string_view flag) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text != nullptr && *text == now) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(name, ": cannot be changed while saccaded is running; set ", flag, " when it is started"));
}

absl::Status Change(absl::string_view name, const Parameter& value, LogFormat format, LogSettings& settings) {
  if (name == "log_info") return Set(name, value, &settings.info);
  if (name == "log_warning") return Set(name, value, &settings.warning);
  if (name == "log_error") return Set(name, value, &settings.error);
  if (name == "log_verbose_level") return SetVerbose(name, value, &settings.verbose);
  if (name == "log_format") return Keep(name, value, NameOf(format), "--log-format");
  if (name == "log_file") return Keep(name, value, "", "the target of its stderr");
  return Invalid("settings",
                 absl::StrCat("unknown setting ", Shown(name),
                              "; expected log_info, log_warning, log_error or log_verbose_level"));
}

}  // namespace

absl::StatusOr<LogSettings> Changed(LogSettings now, LogFormat format, const NamedParameters& changes) {
  for (const auto& [name, value] : changes) {
    absl::Status status = Change({name.data(), name.size()}, value, format, now);
    if (!status.ok()) return status;
  }
  return now;
}

NamedParameters Described(const LogSettings& settings, LogFormat format) {
  return {{"log_file", std::string_view()},
          {"log_info", settings.info},
          {"log_warning", settings.warning},
          {"log_error", settings.error},
          {"log_verbose_level", uint64_t{settings.verbose}},
          {"log_format", NameOf(format)}};
}

absl::Status ChangeLog(const NamedParameters& changes) {
  if (changes.empty()) return absl::OkStatus();
  // What a request omits stays as another one has just set it.
  static absl::Mutex changing(absl::kConstInit);
  const absl::MutexLock lock(&changing);
  const auto settings = Changed(CurrentLogSettings(), CurrentLogFormat(), changes);
  if (!settings.ok()) return settings.status();
  ChangeLogSettings(*settings);
  Log(LogLevel::kInfo, "log settings changed",
      {{"info", settings->info},
       {"warning", settings->warning},
       {"error", settings->error},
       {"verbose", settings->verbose}});
  return absl::OkStatus();
}

NamedParameters DescribeLog() { return Described(CurrentLogSettings(), CurrentLogFormat()); }

}  // namespace saccade::server
