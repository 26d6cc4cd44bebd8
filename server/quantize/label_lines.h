// Reads a list of labels: a text with a line for each picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace saccade::server {

// More than ImageNet's training set has.
inline constexpr size_t kMaxLabelLines = 2'000'000;
inline constexpr int64_t kMaxLabelListBytes = int64_t{256} << 20;

struct LabelLine {
  size_t number = 0;  // from 1
  std::string file;   // without folders
  std::string label;
};

struct LabelLines {
  bool is_csv = false;
  std::vector<LabelLine> lines;
};

// Reads lines of a file's name and its label. If the list's own name ends with .csv they are separated by a
// comma, and may be quoted as in RFC 4180, within one line; else by the first space or tab. Empty lines are
// passed over. INVALID_ARGUMENT names the list and the line. Blocks.
absl::StatusOr<LabelLines> ReadLabelLines(const std::string& path);

}  // namespace saccade::server
