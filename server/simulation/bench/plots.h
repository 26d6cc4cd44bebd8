// Plots as SVG: lines over an axis, and a table of numbers in colours.
#pragma once

#include <string>
#include <vector>

namespace saccade::server::simulation {

struct Line {
  std::string name;
  // x, y.
  std::vector<std::pair<double, double>> points;
};

// Axes begin at zero.
std::string LinePlot(const std::string& x, const std::string& y, const std::vector<Line>& lines);

// cells[row][column]; from `worst` in red to `best` in green. NaN leaves a cell out.
std::string HeatTable(const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                      const std::vector<std::vector<double>>& cells, double worst, double best);

}  // namespace saccade::server::simulation
