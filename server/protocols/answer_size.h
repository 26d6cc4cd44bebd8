// Checks the size of answers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// RESOURCE_EXHAUSTED if the answer has more than `max` bytes. The front would also refuse to send it, but
// without this advice. `instead` says what the client can ask for.
inline absl::Status CheckAnswerSize(size_t bytes, int64_t max, absl::string_view instead) {
  if (bytes <= static_cast<size_t>(max)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer has ", bytes, " bytes, more than --max-message-bytes ", max, "; ", instead));
}

}  // namespace saccade::server
