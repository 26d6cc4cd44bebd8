// Prints text tables; columns are as wide as their content.
#pragma once

#include <string>
#include <vector>

#include "client/cli/output/console.h"

namespace saccade::client {

struct Column {
  std::string title;
  bool right_aligned = false;
};

// Prints a table. REQUIRES: every row has as many cells as there are columns. Control characters in cells are
// replaced.
void PrintTable(Console& console, const std::vector<Column>& columns,
                const std::vector<std::vector<std::string>>& rows);

// Prints rows without a header, indented by two columns; columns that are empty in all rows are left out.
void PrintRows(Console& console, const std::vector<bool>& right_aligned,
               const std::vector<std::vector<std::string>>& rows);

// Formats 3449408 as "3,449,408".
std::string WithThousands(int64_t number);

}  // namespace saccade::client
