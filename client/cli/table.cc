#include "client/cli/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

// Code points, which is what most scripts take columns.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string Line(const std::vector<Column>& columns, const std::vector<size_t>& widths,
                 const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string padding(widths[i] - Width(cells[i]), ' ');
    const std::string cell = columns[i].right_aligned ? padding + cells[i] : cells[i] + padding;
    absl::StrAppend(&line, i == 0 ? "" : "  ", cell);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void PrintTable(Console& console, const std::vector<Column>& columns,
                const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const Column& column : columns) {
    titles.push_back(column.title);
    widths.push_back(Width(column.title));
  }
  std::vector<std::vector<std::string>> printable = rows;
  for (auto& row : printable) {
    for (size_t i = 0; i < columns.size(); ++i) {
      row[i] = Printable(row[i]);
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  console.out << Paint(console, Tone::kStrong, Line(columns, widths, titles)) << '\n';
  for (const auto& row : printable) console.out << Line(columns, widths, row) << '\n';
}

std::string WithThousands(int64_t number) {
  std::string digits = absl::StrCat(number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, 1, ',');
  return digits;
}

}  // namespace saccade::client
