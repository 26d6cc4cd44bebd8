#include "models/tools/operator_figures.h"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/bench/paper_counts.h"

namespace saccade::models {
namespace {

using kernels::Cost;

constexpr double kMega = 1e6;
constexpr double kGiga = 1e9;

// An operator's published figures, in units of a table.
struct Published {
  const char* name;
  Cost cost;  // of one image
  double mega_madds;
  double memory;
  double saved;  // percent of the memory of the table's first operator
};

// The operators on one size of input.
struct Table {
  const char* paper;
  const char* input;
  double memory_unit;
  const char* memory_format;
  double images;  // that the memory is of
  std::vector<Published> rows;
};

Table Kronecker(const char* input, double side, const std::array<Published, 4>& rows) {
  constexpr double kChannels = 8;
  Table table = {"KAO, table 2", input, kMega, "%.1f MB", 8, {rows.begin(), rows.end()}};
  table.rows[0].cost = kernels::KaoAttentionCost(side, side, kChannels);
  table.rows[1].cost = kernels::KaoPooledAttentionCost(side, side, kChannels);
  table.rows[2].cost = kernels::KaoKvCost(side, side, kChannels);
  table.rows[3].cost = kernels::KaoQkvCost(side, side, kChannels);
  return table;
}

Table Siamese(const char* input, double side, double channels, double memory_unit,
              const std::array<Published, 4>& rows) {
  const double positions = side * side;
  Table table = {"SAO, table 2",
                 input,
                 memory_unit,
                 memory_unit == kGiga ? "%.2f GB" : "%.2f MB",
                 1,
                 {rows.begin(), rows.end()}};
  table.rows[0].cost = kernels::SaoAttentionCost(positions, channels);
  table.rows[1].cost = kernels::SaoPooledAttentionCost(positions, channels);
  table.rows[2].cost = kernels::SaoScaledAttentionCost(positions, channels);
  table.rows[3].cost = kernels::SaoCost(positions, channels);
  return table;
}

std::vector<Table> Tables() {
  return {
      Kronecker("14x14x8", 14,
                {{{"Attn", {}, 0.63, 5.2, 0},
                  {"Attn+Pool", {}, 0.16, 1.5, 71.65},
                  {"KAO KV", {}, 0.09, 0.9, 82.03},
                  {"KAO QKV", {}, 0.01, 0.3, 95.06}}}),
      Kronecker("28x28x8", 28,
                {{{"Attn", {}, 9.88, 79.9, 0},
                  {"Attn+Pool", {}, 2.47, 20.7, 74.13},
                  {"KAO KV", {}, 0.71, 6.5, 91.88},
                  {"KAO QKV", {}, 0.05, 0.9, 98.85}}}),
      Kronecker("56x56x8", 56,
                {{{"Attn", {}, 157.55, 1262.6, 0},
                  {"Attn+Pool", {}, 39.39, 318.7, 74.76},
                  {"KAO KV", {}, 5.62, 48.2, 96.18},
                  {"KAO QKV", {}, 0.21, 3.4, 99.73}}}),
      Siamese("14x14x64", 14, 64, kMega,
              {{{"Attn", {}, 4.92, 20.97, 0},
                {"Attn+Pool", {}, 1.23, 8.39, 59.99},
                {"Attn 1/N", {}, 1.61, 5.24, 75.01},
                {"SAO", {}, 0.05, 4.29, 79.54}}}),
      Siamese("28x28x128", 28, 128, kMega,
              {{{"Attn", {}, 157.35, 301.99, 0},
                {"Attn+Pool", {}, 39.34, 100.66, 66.67},
                {"Attn 1/N", {}, 25.69, 37.75, 87.50},
                {"SAO", {}, 0.40, 33.88, 88.78}}}),
      Siamese("56x56x256", 56, 256, kGiga,
              {{{"Attn", {}, 5035.26, 5.04, 0},
                {"Attn+Pool", {}, 1258.82, 1.34, 73.38},
                {"Attn 1/N", {}, 411.04, 0.28, 94.34},
                {"SAO", {}, 3.21, 0.26, 94.65}}}),
  };
}

std::string Text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

void PrintIfDifferent(const Table& table, const Published& row, const char* figure, const char* format,
                      double here, double published) {
  const std::string ours = Text(format, here);
  const std::string theirs = Text(format, published);
  if (ours == theirs) return;
  std::printf("| %s | %s | %s | %s | %s | %s |\n", table.paper, table.input, row.name, figure, ours.c_str(),
              theirs.c_str());
}

}  // namespace

void PrintDifferingOperators() {
  std::printf("\n| paper | input | operator | figure | here | published |\n|---|---|---|---|---|---|\n");
  for (const Table& table : Tables()) {
    const double whole = table.rows[0].cost.bytes;
    for (const Published& row : table.rows) {
      PrintIfDifferent(table, row, "multiply-adds", "%.2f M", row.cost.madds / kMega, row.mega_madds);
      PrintIfDifferent(table, row, "memory", table.memory_format,
                       table.images * row.cost.bytes / table.memory_unit, row.memory);
      PrintIfDifferent(table, row, "memory saved", "%.2f %%", 100 * (1 - row.cost.bytes / whole), row.saved);
    }
  }
}

}  // namespace saccade::models
