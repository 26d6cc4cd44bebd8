// Maps a status to Triton's failure reasons.
#pragma once

#include <array>
#include <string_view>

#include "absl/status/status.h"

namespace saccade::server {

enum class FailureReason { kRejected, kCanceled, kBackend, kOther };

inline constexpr std::array<std::string_view, 4> kFailureReasonNames = {"REJECTED", "CANCELED", "BACKEND",
                                                                        "OTHER"};

// `computed`: the request took part in a forward pass. REQUIRES: `code` is not OK.
FailureReason FailureReasonOf(absl::StatusCode code, bool computed);

}  // namespace saccade::server
