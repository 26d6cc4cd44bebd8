#include "models/quantize/figure.h"

#include <array>
#include <cstdio>

namespace saccade::models {

double FigureLoss(bool is_error, double float32, double int8) {
  const double worse = is_error ? int8 - float32 : float32 - int8;
  return worse / float32;
}

std::string FigureText(double figure) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.4g", figure);
  return text.data();
}

std::map<std::string, std::string> FigureMetadata(const FigureReport& report) {
  return {{"saccade_figure", report.name},
          {"saccade_figure_float32", FigureText(report.float32)},
          {"saccade_figure_int8", FigureText(report.int8)},
          {"saccade_figure_items", std::to_string(report.items)}};
}

}  // namespace saccade::models
