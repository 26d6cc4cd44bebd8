// A table of text, its columns as wide as they need to be.
#pragma once

#include <string>
#include <vector>

#include "client/cli/console.h"

namespace saccade::client {

struct Column {
  std::string title;
  bool right_aligned = false;
};

// Every row must have as many cells as there are columns. Cells are made printable.
void PrintTable(Console& console, const std::vector<Column>& columns,
                const std::vector<std::vector<std::string>>& rows);

// The same without a head, two columns further in; columns that are empty throughout are left out.
void PrintRows(Console& console, const std::vector<bool>& right_aligned,
               const std::vector<std::vector<std::string>>& rows);

// 3449408 as 3,449,408.
std::string WithThousands(int64_t number);

}  // namespace saccade::client
