// SVG plots: line plots and coloured tables.
#pragma once

#include <string>
#include <vector>

namespace saccade::server::simulation {

struct Line {
  std::string name;
  // (x, y) pairs.
  std::vector<std::pair<double, double>> points;
};

// Both axes begin at zero.
std::string LinePlot(const std::string& x, const std::string& y, const std::vector<Line>& lines);

// cells[row][column]. Colours range from red for `worst` to green for `best`. Cells that are NaN are left
// out.
std::string HeatTable(const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                      const std::vector<std::vector<double>>& cells, double worst, double best);

}  // namespace saccade::server::simulation
