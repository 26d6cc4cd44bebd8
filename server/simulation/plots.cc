#include "server/simulation/plots.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace saccade::server::simulation {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 360;
constexpr double kLeft = 70;
constexpr double kRight = 150;
constexpr double kTop = 15;
constexpr double kBottom = 45;
constexpr const char* kColours[] = {"#1b6ca8", "#d1495b", "#edae49", "#4f9d69", "#7a5195", "#8d8d8d"};

std::string Open(double width, double height) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      width, height);
}

std::string Text(double x, double y, const std::string& anchor, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text);
}

// A round step that divides the axis into about five parts.
double StepOf(double largest) {
  const double power = std::pow(10, std::floor(std::log10(largest / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (largest / (factor * power) <= 6) return factor * power;
  }
  return 10 * power;
}

std::vector<double> TicksOf(double largest) {
  const double step = StepOf(largest);
  std::vector<double> ticks;
  for (int i = 0; i * step <= largest * 1.001; ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace

std::string LinePlot(const std::string& x, const std::string& y, const std::vector<Line>& lines) {
  double largest_x = 1e-9;
  double largest_y = 1e-9;
  for (const Line& line : lines) {
    for (const auto& [at_x, at_y] : line.points) {
      largest_x = std::max(largest_x, at_x);
      largest_y = std::max(largest_y, at_y);
    }
  }
  const double inner_width = kWidth - kLeft - kRight;
  const double inner_height = kHeight - kTop - kBottom;
  const auto to_x = [&](double value) { return kLeft + value / largest_x * inner_width; };
  const auto to_y = [&](double value) { return kTop + (1 - value / largest_y) * inner_height; };

  std::string svg = Open(kWidth, kHeight);
  for (const double tick : TicksOf(largest_x)) {
    absl::StrAppend(&svg, Text(to_x(tick), kHeight - kBottom + 18, "middle", absl::StrCat(tick)));
  }
  for (const double tick : TicksOf(largest_y)) {
    absl::StrAppendFormat(&svg, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", kLeft, to_y(tick),
                          kLeft + inner_width);
    absl::StrAppend(&svg, Text(kLeft - 8, to_y(tick) + 4, "end", absl::StrCat(tick)));
  }
  absl::StrAppend(&svg, Text(kLeft + inner_width / 2, kHeight - 8, "middle", x));
  absl::StrAppendFormat(
      &svg, "<text transform=\"translate(16 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
      kTop + inner_height / 2, y);
  for (size_t i = 0; i < lines.size(); ++i) {
    const char* const colour = kColours[i % std::size(kColours)];
    std::string points;
    for (const auto& [at_x, at_y] : lines[i].points) {
      absl::StrAppendFormat(&points, "%.1f,%.1f ", to_x(at_x), to_y(at_y));
    }
    absl::StrAppendFormat(&svg, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                          points, colour);
    const double legend = kTop + 14 + 20 * static_cast<double>(i);
    absl::StrAppendFormat(&svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"3\" fill=\"%s\"/>\n",
                          kWidth - kRight + 12, legend - 5, colour);
    absl::StrAppend(&svg, Text(kWidth - kRight + 30, legend, "start", lines[i].name));
  }
  return absl::StrCat(svg, "</svg>\n");
}

std::string HeatTable(const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                      const std::vector<std::vector<double>>& cells, double worst, double best) {
  constexpr double kCellWidth = 90;
  constexpr double kCellHeight = 34;
  const double width = kCellWidth * static_cast<double>(columns.size() + 1);
  const double height = kCellHeight * static_cast<double>(rows.size() + 1);
  std::string svg = Open(width, height);
  for (size_t column = 0; column < columns.size(); ++column) {
    absl::StrAppend(&svg,
                    Text(kCellWidth * (static_cast<double>(column) + 1.5), 22, "middle", columns[column]));
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    const double top = kCellHeight * static_cast<double>(row + 1);
    absl::StrAppend(&svg, Text(kCellWidth - 10, top + 21, "end", rows[row]));
    for (size_t column = 0; column < columns.size(); ++column) {
      const double value = cells[row][column];
      if (std::isnan(value)) continue;
      const double hue = 120 * std::clamp((value - worst) / (best - worst), 0.0, 1.0);
      const double left = kCellWidth * static_cast<double>(column + 1);
      absl::StrAppendFormat(
          &svg,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"hsl(%.0f 60%% 75%%)\" "
          "stroke=\"white\"/>\n",
          left, top, kCellWidth, kCellHeight, hue);
      absl::StrAppend(&svg, Text(left + kCellWidth / 2, top + 21, "middle", absl::StrFormat("%.2f", value)));
    }
  }
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace saccade::server::simulation
