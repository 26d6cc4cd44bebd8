// The text form of measured kinds, in which they are stored between two starts of the daemon.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/catalog/model_kinds.h"

namespace saccade::server {

// Maximum size of the text, and of one kind's name and number of passes; kinds beyond these are left out. If
// the text has no room for all kinds, or there are more than kMaxKinds, those that were used last are in it.
inline constexpr size_t kMaxKindsBytes = size_t{8} << 20;
inline constexpr size_t kMaxKindBytes = 4096;
inline constexpr size_t kMaxKindPasses = 1024;

// The machine and the program for which measurements hold.
struct MeasuredOn {
  // Each a line of text.
  std::string machine;
  std::string build;
};

std::string WriteKinds(const MeasuredOn& on, const std::map<std::string, MeasuredKind>& kinds);

// Reads what WriteKinds() wrote. FAILED_PRECONDITION if it was measured on another machine or by another
// build, INVALID_ARGUMENT with the line if it is damaged. `text` may hold anything.
absl::StatusOr<std::map<std::string, MeasuredKind>> ReadKinds(absl::string_view text, const MeasuredOn& on);

}  // namespace saccade::server
