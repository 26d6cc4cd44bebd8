#include "server/quantize/label_lines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "models/api/text.h"
#include "server/quantize/bounded_file.h"
#include "server/quantize/folder_files.h"

namespace saccade::server {
namespace {

using Cells = std::vector<std::string>;

// Removes the cell at the start of `line`, up to the comma behind it. Returns false if its quotes do not end.
bool TakeCell(absl::string_view& line, std::string& cell) {
  cell.clear();
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "\"")) {
    const size_t end = std::min(line.find(','), line.size());
    cell = std::string(absl::StripAsciiWhitespace(line.substr(0, end)));
    line.remove_prefix(end);
    return true;
  }
  for (;;) {
    const size_t quote = line.find('"');
    if (quote == absl::string_view::npos) return false;
    absl::StrAppend(&cell, line.substr(0, quote));
    line.remove_prefix(quote + 1);
    // Two quotes stand for one.
    if (!absl::ConsumePrefix(&line, "\"")) break;
    cell += '"';
  }
  line = absl::StripLeadingAsciiWhitespace(line);
  return line.empty() || line.front() == ',';
}

// Cells of a line that are wanted. One more is read, to tell a line that has too many.
constexpr size_t kWantedCells = 2;

// Returns up to kWantedCells + 1 cells; none if the line is no list of cells.
Cells CsvCells(absl::string_view line) {
  Cells cells;
  do {
    if (!TakeCell(line, cells.emplace_back())) return {};
  } while (cells.size() <= kWantedCells && absl::ConsumePrefix(&line, ","));
  return cells;
}

Cells WordAndRest(absl::string_view line) {
  const size_t end = line.find_first_of(" \t");
  if (end == absl::string_view::npos) return {std::string(line)};
  return {std::string(line.substr(0, end)), std::string(absl::StripAsciiWhitespace(line.substr(end)))};
}

}  // namespace

absl::StatusOr<LabelLines> ReadLabelLines(const std::string& path) {
  const auto content = ReadBoundedFile(path, kMaxLabelListBytes);
  if (!content.ok()) return content.status();
  LabelLines read = {.is_csv = absl::EndsWithIgnoreCase(path, ".csv"), .lines = {}};
  absl::string_view left = *content;
  absl::ConsumePrefix(&left, "\xEF\xBB\xBF");
  for (size_t number = 1; !left.empty(); ++number) {
    const size_t end = std::min(left.find('\n'), left.size());
    const absl::string_view line = absl::StripAsciiWhitespace(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    if (line.empty()) continue;
    Cells cells = read.is_csv ? CsvCells(line) : WordAndRest(line);
    if (cells.size() != kWantedCells || cells[0].empty() || cells[1].empty()) {
      const std::string shown = models::Quote(std::string(line));
      return absl::InvalidArgumentError(
          read.is_csv ? absl::StrCat(path, ", line ", number, ": is ", shown,
                                     "; expected FILE,LABEL, with quotes around a cell that has a comma")
                      : absl::StrCat(path, ", line ", number, ": is ", shown,
                                     "; expected FILE LABEL. A list in which names of files have spaces is "
                                     "a .csv, FILE,LABEL"));
    }
    if (read.lines.size() == kMaxLabelLines)
      return absl::InvalidArgumentError(absl::StrCat(path, ": has more than ", kMaxLabelLines, " labels"));
    read.lines.push_back({number, FileName(cells[0]), std::move(cells[1])});
  }
  if (read.lines.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no labels; expected a line for each picture"));
  return read;
}

}  // namespace saccade::server
