// The form of all errors about a field of saccade.v1.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/bad_field.h"

namespace saccade::server {

inline absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  absl::Status error = absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
  SetBadField(error, field);
  return error;
}

}  // namespace saccade::server
