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

class Calibration {
 public:
  enum class Phase { kOff, kRanges, kHistograms };

  // Has passes measure from now on.
  void Measure(Phase phase) { phase_ = phase; }

  // In the order of loading.
  const std::vector<std::shared_ptr<CalibratedLayer>>& layers() const { return layers_; }
  std::shared_ptr<CalibratedLayer> Add(std::string file_name, at::Tensor weight, CalibratedLayer::Maker make);
  void Observe(CalibratedLayer& layer, const at::Tensor& input, const at::Tensor& output) const;

 private:
  Phase phase_ = Phase::kOff;
  std::vector<std::shared_ptr<CalibratedLayer>> layers_;
};

}  // namespace saccade::models
