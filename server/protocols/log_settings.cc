#include "server/protocols/log_settings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/inference/errors.h"

namespace saccade::server {
namespace {

using Value = inference::LogSettingsRequest::SettingValue;

// Lines of text tell the time as ISO 8601 has it, which is one of Triton's formats; JSON is ours.
const char* NameOf(LogFormat format) { return format == LogFormat::kJson ? "json" : "ISO8601"; }

absl::Status Change(const std::string& name, const Value& value, bool* to) {
  if (value.parameter_choice_case() != Value::kBoolParam) return Invalid(name, "expected a boolean");
  *to = value.bool_param();
  return absl::OkStatus();
}

absl::Status Fixed(const std::string& name, absl::string_view flag) {
  return absl::UnimplementedError(
      absl::StrCat(name, ": cannot be changed while saccaded runs; ", flag, " sets it when it starts"));
}

absl::Status Change(const std::string& name, const Value& value, LogFormat format, LogSettings& settings) {
  if (name == "log_info") return Change(name, value, &settings.info);
  if (name == "log_warning") return Change(name, value, &settings.warning);
  if (name == "log_error") return Change(name, value, &settings.error);
  if (name == "log_verbose_level") {
    if (value.parameter_choice_case() != Value::kUint32Param) return Invalid(name, "expected an integer");
    settings.verbose = value.uint32_param();
    return absl::OkStatus();
  }
  if (name == "log_format") {
    return value.string_param() == NameOf(format) ? absl::OkStatus() : Fixed(name, "--log-format");
  }
  if (name == "log_file") return Fixed(name, "whatever takes its stderr");
  return Invalid("settings",
                 absl::StrCat("there is none named ", Shown(name),
                              "; expected log_info, log_warning, log_error or log_verbose_level"));
}

}  // namespace

absl::StatusOr<LogSettings> Changed(LogSettings now, LogFormat format,
                                    const inference::LogSettingsRequest& request) {
  for (const auto& [name, value] : request.settings()) {
    if (absl::Status status = Change(name, value, format, now); !status.ok()) return status;
  }
  return now;
}

void ToMessage(const LogSettings& settings, LogFormat format, inference::LogSettingsResponse* message) {
  auto& named = *message->mutable_settings();
  named["log_file"].set_string_param("");
  named["log_info"].set_bool_param(settings.info);
  named["log_warning"].set_bool_param(settings.warning);
  named["log_error"].set_bool_param(settings.error);
  named["log_verbose_level"].set_uint32_param(settings.verbose);
  named["log_format"].set_string_param(NameOf(format));
}

}  // namespace saccade::server
