// Reads the lines of a file in the state folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace saccade::server {

// Whether the text is a whole number within the bounds, which is stored in `number`.
inline bool IsWithin(absl::string_view text, int64_t min, int64_t max, int64_t* number) {
  return absl::SimpleAtoi(text, number) && *number >= min && *number <= max;
}

// The error for a line, of which the first is 0.
inline absl::Status Damaged(size_t line, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line + 1, ": expected ", expected));
}

// Reads the lines of a text one after the other.
class TextLines {
 public:
  explicit TextLines(absl::string_view text) : lines_(absl::StrSplit(text, '\n')) {}

  size_t number() const { return number_; }
  // The current line; empty after the last one.
  absl::string_view line() const { return number_ < lines_.size() ? lines_[number_] : absl::string_view(); }
  // Advances if the current line is `name` and a space, and then returns the rest in `value`.
  bool Take(absl::string_view name, absl::string_view* value) {
    absl::string_view rest = line();
    if (!absl::ConsumePrefix(&rest, name) || !absl::ConsumePrefix(&rest, " ")) return false;
    *value = rest;
    ++number_;
    return true;
  }
  // The same for a number within the bounds.
  bool TakeNumber(absl::string_view name, int64_t min, int64_t max, int64_t* number) {
    absl::string_view value;
    if (!Take(name, &value)) return false;
    if (IsWithin(value, min, max, number)) return true;
    --number_;
    return false;
  }
  bool TakeLine(absl::string_view text) {
    if (line() != text) return false;
    ++number_;
    return true;
  }

 private:
  const std::vector<absl::string_view> lines_;
  size_t number_ = 0;
};

}  // namespace saccade::server
