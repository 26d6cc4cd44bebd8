// Measures the ranges of the maps of a network's convolutions, which quantizing the network needs, and the
// loss that each convolution causes in 8 bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/layers/int8_convolution.h"
#include "models/layers/value_range.h"

namespace saccade::models {

// A convolution of the network. Not thread-safe, as the others here.
class CalibratedLayer {
 public:
  using Maker = std::function<std::shared_ptr<const Int8Convolution>(const Int8Grids& grids)>;

  // `file_name` is the weight's name in the weights file. `make` returns the convolution in 8 bits, with
  // results in float32.
  CalibratedLayer(std::string file_name, at::Tensor weight, Maker make)
      : file_name_(std::move(file_name)), weight_(std::move(weight)), make_(std::move(make)) {}

  const std::string& file_name() const { return file_name_; }
  // As in the file.
  const at::Tensor& weight() const { return weight_; }
  // Whether the network has computed with it.
  bool seen() const { return input_.seen() && output_.seen(); }
  Int8Grids Grids(RangeMethod method) const { return {input_.Best(method), output_.Best(method)}; }

  // Has the layer compute in 8 bits from now on, or in float32 again.
  void Try(const Int8Grids& grids) { trial_ = make_(grids); }
  void Untry() { trial_ = nullptr; }

  // The following are called by the convolution.
  const Int8Convolution* trial() const { return trial_.get(); }
  void Widen(const at::Tensor& input, const at::Tensor& output);
  void Count(const at::Tensor& input, const at::Tensor& output);

 private:
  const std::string file_name_;
  const at::Tensor weight_;
  const Maker make_;
  ValueRange input_, output_;
  std::shared_ptr<const Int8Convolution> trial_;
};

// Layers that are quantized together or not at all.
struct CalibratedUnit {
  std::string module;  // the name of the module that joined its layers; empty if there is one layer alone
  std::vector<std::shared_ptr<CalibratedLayer>> layers;
};

class Calibration {
 public:
  enum class Phase { kOff, kRanges, kHistograms };

  // Has passes measure from now on.
  void Measure(Phase phase) { phase_ = phase; }

  // All layers, in the order of loading.
  const std::vector<CalibratedUnit>& units() const { return units_; }
  // Adds a layer as a unit of its own.
  std::shared_ptr<CalibratedLayer> Add(std::string file_name, at::Tensor weight, CalibratedLayer::Maker make);
  // Makes one unit of the layers with these weights, in this order: those that one kernel computes if all of
  // them are in 8 bits. Throws std::logic_error if one was not added, or is joined already.
  void Join(std::string module, const std::vector<std::string>& file_names);
  void Observe(CalibratedLayer& layer, const at::Tensor& input, const at::Tensor& output) const;

 private:
  Phase phase_ = Phase::kOff;
  std::vector<CalibratedUnit> units_;
};

}  // namespace saccade::models
