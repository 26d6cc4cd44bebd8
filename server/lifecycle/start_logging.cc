#include "server/lifecycle/start_logging.h"

#include "server/logging/log.h"

namespace saccade::server {

void StartLogging(const Flags& flags) {
  InitLogging(flags.log_format, flags.log_level);
  LogSettings settings = CurrentLogSettings();
  settings.info = settings.info && flags.log_info;
  settings.warning = settings.warning && flags.log_warning;
  settings.error = settings.error && flags.log_error;
  ChangeLogSettings(settings);
  // --check-config prints the warnings itself.
  if (flags.check_config) return;
  for (const std::string& warning : flags.warnings) Log(LogLevel::kWarning, warning);
}

}  // namespace saccade::server
