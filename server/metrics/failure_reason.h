// Which of Triton's failure reasons a status is.
#pragma once

#include <array>
#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

enum class FailureReason { kRejected, kCanceled, kBackend, kOther };

inline constexpr std::array<std::string_view, 4> kFailureReasonNames = {"REJECTED", "CANCELED", "BACKEND",
                                                                        "OTHER"};

// REQUIRES: `code` is not OK. `computed`: the request took part in a forward pass.
FailureReason FailureReasonOf(absl::StatusCode code, bool computed);

}  // namespace saccade::server
