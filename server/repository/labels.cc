#include "server/repository/labels.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxLabels = 65'536;
constexpr size_t kMaxLabelBytes = 256;

absl::Status CheckLabel(absl::string_view label) {
  if (label.size() > kMaxLabelBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", label.size(), " bytes, expected at most ", kMaxLabelBytes));
  }
  const auto is_control = [](unsigned char c) { return absl::ascii_iscntrl(c); };
  if (std::any_of(label.begin(), label.end(), is_control)) {
    return absl::InvalidArgumentError("holds a control character; expected plain text");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseLabels(absl::string_view text, absl::string_view shown) {
  absl::string_view rest = absl::StripPrefix(text, "\xEF\xBB\xBF");
  rest = absl::StripTrailingAsciiWhitespace(rest);
  std::vector<std::string> labels;
  if (rest.empty()) return labels;
  for (absl::string_view line : absl::StrSplit(rest, '\n')) {
    if (labels.size() == kMaxLabels) {
      return absl::InvalidArgumentError(
          absl::StrCat(shown, ": has more than the maximum of ", kMaxLabels, " labels"));
    }
    const absl::string_view label = absl::StripSuffix(line, "\r");
    if (absl::Status status = CheckLabel(label); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(shown, ": line ", labels.size() + 1, " ", status.message()));
    }
    labels.emplace_back(label);
  }
  return labels;
}

}  // namespace saccade::server
