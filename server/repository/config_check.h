// Errors in a configuration; all begin with the file, the line and the field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/repository/config_lines.h"

namespace saccade::server {

// Quotes text of a configuration for an error: escaped, and truncated if it is long.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShown = 128;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxShown)), text.size() > kMaxShown ? "..." : "",
                      "'");
}

// Joins the names of a list; after the first eight, "and 3 more" replaces the rest.
inline std::string NamesOfSome(const std::vector<std::string>& names) {
  constexpr size_t kMaxNamed = 8;
  if (names.size() <= kMaxNamed) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMaxNamed, ", "), " and ",
                      names.size() - kMaxNamed, " more");
}

class ConfigCheck {
 public:
  // `shown` is the name of the file in errors; both arguments must outlive this object.
  ConfigCheck(absl::string_view shown, const ConfigLines* lines) : shown_(shown), lines_(lines) {}

  // "m/config.pbtxt:3: max_batch_size: ".
  std::string Where(absl::string_view field) const {
    const int line = lines_->LineOf(field);
    return absl::StrCat(shown_, line > 0 ? absl::StrCat(":", line) : "", ": ", field, ": ");
  }

  // Returns INVALID_ARGUMENT. `field` is a path as in ConfigLines.
  template <typename... Parts>
  absl::Status Error(absl::string_view field, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(Where(field), parts...));
  }

  absl::Status Range(absl::string_view field, uint64_t value, uint64_t min, uint64_t max) const {
    if (value >= min && value <= max) return absl::OkStatus();
    return Error(field, "is ", value, ", expected ", min, " to ", max);
  }

  const ConfigLines& lines() const { return *lines_; }

 private:
  const absl::string_view shown_;
  const ConfigLines* const lines_;
};

}  // namespace saccade::server
