// Formats errors about tensors and parameters.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/bad_field.h"

namespace saccade::server {

// A client's text, shortened, escaped and quoted.
inline std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 128)), "'");
}

inline absl::Status Invalid(absl::string_view subject, absl::string_view problem) {
  absl::Status error = absl::InvalidArgumentError(absl::StrCat(subject, ": ", problem));
  SetBadField(error, subject);
  return error;
}

}  // namespace saccade::server
