// The figure of a task, such as a classifier's top-1, by which a quantized network is judged if there are
// labels.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "models/api/model.h"

namespace saccade::models {

// Labelled items with which the ranges are not measured, and the figure that a network reaches on them.
struct FigureInput {
  std::string name;       // "top-1"
  bool is_error = false;  // whether a smaller figure is better
  size_t items = 0;
  // Returns the figure of `model`. Calls `done` before each item, with the number of those before it. May
  // throw.
  std::function<double(const Model& model, const std::function<void(size_t items)>& done)> measure = nullptr;
};

struct FigureReport {
  std::string name;
  bool is_error = false;
  size_t items = 0;
  double float32 = 0;
  double int8 = 0;         // with the chosen layers in 8 bits
  double int8_of_all = 0;  // with all layers in 8 bits
};

// Returns which share of the figure in float32 is lost with `int8`: 0.01 if an accuracy falls from 0.80 to
// 0.792, or an error grows from 1 to 1.01. Negative if the figure in int8 is better. REQUIRES: float32 > 0.
double FigureLoss(bool is_error, double float32, double int8);

// Returns what the weights file says of the figure: the keys are saccade_figure, saccade_figure_float32,
// saccade_figure_int8 and saccade_figure_items.
std::map<std::string, std::string> FigureMetadata(const FigureReport& report);

// Returns a figure with four digits, as reports and metadata have it: "0.9531".
std::string FigureText(double figure);

}  // namespace saccade::models
