// The log's settings under Triton's names.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/inference/parameters.h"
#include "server/logging/log.h"

namespace saccade::server {

// Applies `changes` to `now`: log_info, log_warning, log_error (bool) and log_verbose_level (a 32-bit
// integer). Fails without any change with INVALID_ARGUMENT for an unknown name or a value of another type,
// and with UNIMPLEMENTED for a log_file, or a log_format other than `format`.
absl::StatusOr<LogSettings> Changed(LogSettings now, LogFormat format, const NamedParameters& changes);

// All settings. Texts refer to static storage.
NamedParameters Described(const LogSettings& settings, LogFormat format);

// Changes the daemon's log settings and logs the change. Errors as Changed(). Thread-safe.
absl::Status ChangeLog(const NamedParameters& changes);

// The daemon's current log settings. Thread-safe.
NamedParameters DescribeLog();

}  // namespace saccade::server
