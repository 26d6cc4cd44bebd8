// Quantizes a network's convolutions to int8: measures the ranges of their maps on items that stand for the
// traffic, and what each unit of layers costs, and leaves those in a higher precision that cost too much. The
// cost is a distance between answers, or if there are labels what the task's figure loses.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/options.h"
#include "models/layers/value_range.h"
#include "models/quantize/figure.h"

namespace saccade::models {

struct QuantizeOptions {
  RangeMethod method = RangeMethod::kMse;
  // Maximum mean Disagreement() with the answers in float32, or FigureLoss() if there is a figure.
  double max_loss = 0.005;
  // Quantizes all layers whatever they cost, without trying each unit.
  bool all_layers = false;
  // Called before each pass of a step; `done` is the completed part of the step, from 0 to 1.
  std::function<void(const std::string& step, double done)> progress = nullptr;
};

// The network to quantize, and the items.
struct QuantizeInput {
  std::string architecture;
  Options options;
  std::vector<std::string> labels;
  std::string weights_path;
  // Returns the SHA-256 of the weights, which the quantized file tells and which must not change meanwhile.
  // Null: neither. May throw.
  std::function<std::string()> digest = nullptr;
  size_t items = 0;
  // Returns the model's result for an item. May throw.
  std::function<TaskResult(const Model& model, size_t item)> run;
  // If there are labels. Units are still ordered by the distance of the answers to `items`: the figure of a
  // few items is too coarse for that.
  std::optional<FigureInput> figure = std::nullopt;
};

// Layers that are quantized together or not at all: those of a module that one kernel computes if all of them
// are in 8 bits, or one other layer.
struct UnitCost {
  std::string module;               // its name in the network; empty for one other layer
  std::vector<std::string> layers;  // the weights' names, in the file
  // What changes of the answers if these layers alone compute in 8 bits.
  double loss = 0;
  bool quantized = false;
};

struct QuantizeReport {
  // In the order of loading. A unit with a layer that no item reached is not quantized.
  std::vector<UnitCost> units;
  // What changes of the answers if all layers compute in 8 bits, and if those do that are chosen. If there is
  // a figure, which share of it is lost.
  double loss_of_all = 0;
  double loss = 0;
  std::optional<FigureReport> figure = std::nullopt;

  size_t layers() const;
  size_t quantized_layers() const;
};

// Throws a LoadError if this processor lacks the instructions that the quantized network is measured with.
// `native`: whether it has them (CpuMultipliesInt8()).
void CheckProcessorQuantizes(bool native);

// Writes the quantized weights to `path`, whole or not at all. Blocks for many passes. Throws a LoadError:
// one of CheckProcessorQuantizes(), before any pass, or of LoadToCalibrate(), if an item cannot be computed,
// if the figure in float32 is 0, or if max_loss leaves no unit in 8 bits.
QuantizeReport Quantize(const QuantizeInput& input, const QuantizeOptions& options, const std::string& path);

}  // namespace saccade::models
