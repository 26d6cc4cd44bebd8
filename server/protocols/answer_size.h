// Answers that are too large to be sent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

// gRPC would refuse to send it as well, without a word on what to do. `instead` is what the client may ask
// for.
inline absl::Status CheckAnswerSize(size_t bytes, int64_t most, absl::string_view instead) {
  if (bytes <= static_cast<size_t>(most)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer has ", bytes, " bytes, more than --max-message-bytes ", most, "; ", instead));
}

}  // namespace saccade::server
