// Errors of config.pbtxt, which all begin with the file and the field.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server {

class ConfigCheck {
 public:
  // `shown` is the file's name; it must outlive the check.
  explicit ConfigCheck(absl::string_view shown) : shown_(shown) {}

  template <typename... Parts>
  absl::Status Error(absl::string_view field, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(shown_, ": ", field, ": ", parts...));
  }

  absl::Status Range(absl::string_view field, uint64_t value, uint64_t least, uint64_t most) const {
    if (value >= least && value <= most) return absl::OkStatus();
    return Error(field, "is ", value, ", expected ", least, " to ", most);
  }

 private:
  const absl::string_view shown_;
};

}  // namespace saccade::server
