#include "server/quantize/class_names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/api/text.h"

namespace saccade::server {
namespace {

constexpr int64_t kAmbiguous = -1;

}  // namespace

ClassNames::ClassNames(const std::vector<std::string>& names, int64_t classes) : classes_(classes) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [place, is_new] = by_name_.try_emplace(names[i], static_cast<int64_t>(i));
    if (!is_new) place->second = kAmbiguous;
  }
}

absl::StatusOr<int64_t> ClassNames::Find(absl::string_view label) const {
  const std::string text(label);
  const std::string numbers = absl::StrCat("a number from 0 to ", classes_ - 1);
  if (const auto found = by_name_.find(text); found != by_name_.end()) {
    if (found->second != kAmbiguous) return found->second;
    return absl::InvalidArgumentError(absl::StrCat("the label ", models::Quote(text),
                                                   " is the name of several classes of the model; expected ",
                                                   numbers));
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the label ", models::Quote(text), " is no class of the model; expected ",
                     by_name_.empty() ? "" : "a name as in the model's labels, or ", numbers));
  }
  if (number >= 0 && number < classes_) return number;
  return absl::InvalidArgumentError(absl::StrCat("the class ", number, " is out of range; the model has ",
                                                 classes_, " classes; expected ", numbers));
}

}  // namespace saccade::server
