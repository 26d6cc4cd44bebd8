// The log's settings by Triton's names.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/inference/parameters.h"
#include "server/logging/log.h"

namespace saccade::server {

// `now` with what `changes` names: log_info, log_warning, log_error (bool) and log_verbose_level (an integer
// of 32 bits). Nothing is changed if anything is wrong: INVALID_ARGUMENT for a value of another type or an
// unknown name; UNIMPLEMENTED for a log_file, and for a log_format unless it is the `format` that there is.
absl::StatusOr<LogSettings> Changed(LogSettings now, LogFormat format, const NamedParameters& changes);

// All of them. The texts live as long as the program.
NamedParameters Described(const LogSettings& settings, LogFormat format);

// Changes the daemon's log, which says so. Errors as Changed. Thread-safe.
absl::Status ChangeLog(const NamedParameters& changes);

// As the daemon's log is now. Thread-safe.
NamedParameters DescribeLog();

}  // namespace saccade::server
