#include "client/cli/output/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

// Counts code points; in most scripts each is one column wide.
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

struct Laid {
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
};

Laid LayOut(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows) {
  Laid laid{rows, {}};
  for (const Column& column : columns) laid.widths.push_back(Width(column.title));
  for (auto& row : laid.rows) {
    for (size_t i = 0; i < columns.size(); ++i) {
      row[i] = Printable(row[i]);
      laid.widths[i] = std::max(laid.widths[i], Width(row[i]));
    }
  }
  return laid;
}

}  // namespace

void PrintTable(Console& console, const std::vector<Column>& columns,
                const std::vector<std::vector<std::string>>& rows) {
  const Laid laid = LayOut(columns, rows);
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);
  console.out << Paint(console, Tone::kStrong, Line(columns, laid.widths, titles)) << '\n';
  for (const auto& row : laid.rows) console.out << Line(columns, laid.widths, row) << '\n';
}

void PrintRows(Console& console, const std::vector<bool>& right_aligned,
               const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> filled(rows.size());
  for (size_t i = 0; i < right_aligned.size(); ++i) {
    if (std::all_of(rows.begin(), rows.end(), [i](const auto& row) { return row[i].empty(); })) continue;
    columns.push_back({"", right_aligned[i]});
    for (size_t j = 0; j < rows.size(); ++j) filled[j].push_back(rows[j][i]);
  }
  const Laid laid = LayOut(columns, filled);
  for (const auto& row : laid.rows) console.out << "  " << Line(columns, laid.widths, row) << '\n';
}

std::string WithThousands(int64_t number) {
  std::string digits = absl::StrCat(number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) digits.insert(at, 1, ',');
  return digits;
}

}  // namespace saccade::client
