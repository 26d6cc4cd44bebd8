// Errors of a configuration, which all begin with the file, the line and the field.
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

// Text of a configuration as errors quote it: escaped, and cut where it is long.
inline std::string Quoted(absl::string_view text) {
  constexpr size_t kMostShown = 128;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMostShown)),
                      text.size() > kMostShown ? "..." : "", "'");
}

// So many of a list are named; "and 3 more" stands for the others.
inline std::string NamesOfSome(const std::vector<std::string>& names) {
  constexpr size_t kMostNamed = 8;
  if (names.size() <= kMostNamed) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMostNamed, ", "), " and ",
                      names.size() - kMostNamed, " more");
}

class ConfigCheck {
 public:
  // `shown` is the file's name; both must outlive the check.
  ConfigCheck(absl::string_view shown, const ConfigLines* lines) : shown_(shown), lines_(lines) {}

  // "m/config.pbtxt:3: max_batch_size: ".
  std::string Where(absl::string_view field) const {
    const int line = lines_->LineOf(field);
    return absl::StrCat(shown_, line > 0 ? absl::StrCat(":", line) : "", ": ", field, ": ");
  }

  // `field` as ConfigLines names it.
  template <typename... Parts>
  absl::Status Error(absl::string_view field, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(Where(field), parts...));
  }

  absl::Status Range(absl::string_view field, uint64_t value, uint64_t least, uint64_t most) const {
    if (value >= least && value <= most) return absl::OkStatus();
    return Error(field, "is ", value, ", expected ", least, " to ", most);
  }

  const ConfigLines& lines() const { return *lines_; }

 private:
  const absl::string_view shown_;
  const ConfigLines* const lines_;
};

}  // namespace saccade::server
