// The log's settings by Triton's names.
#pragma once

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "server/logging/log.h"

namespace saccade::server {

// `now` with what the request changes: log_info, log_warning, log_error (bool) and log_verbose_level
// (uint32). Nothing is changed if anything is wrong: INVALID_ARGUMENT for a value of another type or an
// unknown name; UNIMPLEMENTED for log_file, and for log_format unless it is the `format` that there is.
absl::StatusOr<LogSettings> Changed(LogSettings now, LogFormat format,
                                    const inference::LogSettingsRequest& request);

void ToMessage(const LogSettings& settings, LogFormat format, inference::LogSettingsResponse* message);

}  // namespace saccade::server
