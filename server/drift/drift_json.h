// Drift as JSON: the report for clients, and the reference in a version's folder, which has the same form as
// the "reference" and the "recent" of a report.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/drift/drift_watch.h"

namespace saccade::server {

// The reference's file in the folder of a version.
inline constexpr char kDriftFile[] = "drift.json";
inline constexpr size_t kMaxDriftFileBytes = 1 << 20;

std::string ToJson(const DriftReport& report, absl::string_view model, int64_t version);

// INVALID_ARGUMENT says what is wrong with the text.
absl::StatusOr<Distribution> ReadDistribution(absl::string_view json);

}  // namespace saccade::server
