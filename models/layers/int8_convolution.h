// A convolution of maps in 8 bits with weights in 8 bits: products are summed exactly, in 32-bit integers,
// and the sums are scaled in float32.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "models/layers/activation.h"
#include "models/layers/packed_weight.h"
#include "models/layers/quantized_map.h"

namespace saccade::models {

// The grids of a convolution's input and of its result, behind the activation or the sum.
struct Int8Grids {
  Grid input;
  Grid output;
};

// Weights of output channel c are scale[c] * values[c].
struct Int8Weight {
  at::Tensor values;  // int8 [outputs, inputs / groups, k, k], from -127 to 127
  at::Tensor scale;   // float64 [outputs]
};

// Rounds each output channel to 255 steps, the largest of them its largest weight. `weight` is finite.
Int8Weight QuantizedWeight(const at::Tensor& weight);

// Folds a batch norm's scale, float64 [outputs], into the weight's own scales, which are of any floating
// type. A negative scale is moved into the weight.
Int8Weight Scaled(const Int8Weight& weight, const at::Tensor& scale);

// Thread-safe. As in Convolution, a picture's result does not depend on the others in x.
class Int8Convolution {
 public:
  struct Options {
    Activation activation = Activation::kNone;
    Int8Grids grids;
    // Whether results are maps in 8 bits. If not, they are of type `floats`.
    bool stays_int8 = false;
    at::ScalarType floats = at::kFloat;
  };

  // `bias` is float32 [outputs].
  Int8Convolution(const Int8Weight& weight, at::Tensor bias, PackedWeight::Geometry geometry,
                  Options options);

  // x is a map in 8 bits, on any grid, or a map of floats, which is rounded to the input's grid.
  at::Tensor operator()(const at::Tensor& x) const;
  // Returns activation(convolution + other). `other` is a map in 8 bits or of floats, dense in channels-last;
  // its memory may be overwritten.
  at::Tensor AddedTo(at::Tensor other, const at::Tensor& x) const;

 private:
  using Ints = c10::List<int64_t>;

  // The input in 8 bits, and how it enters the operator.
  struct Input {
    at::Tensor bytes;
    Grid grid;  // with zero 0 if the bias accounts for the zero point
    at::Tensor bias;
  };
  Input Prepared(const at::Tensor& x) const;
  at::Tensor Result(const Input& input, at::ScalarType type, Activation activation) const;
  at::Tensor BiasFor(const Grid& grid) const;

  Options options_;
  at::Tensor bias_;
  at::Tensor scale_;        // float32 [outputs]
  at::Tensor zero_points_;  // of the weights: zeros, int32 [outputs]
  at::Tensor sums_;         // float64 [outputs]: each output's sum of weights
  bool padded_;
  int64_t groups_;
  Ints stride_, padding_, dilation_;
  std::shared_ptr<PackedWeight> packed_;
  // The biases for inputs whose zero point is not 0, by its grid.
  struct Biases {
    std::mutex mutex;
    std::map<std::pair<double, int64_t>, at::Tensor> by_grid;
  };
  std::shared_ptr<Biases> biases_ = std::make_shared<Biases>();
};

}  // namespace saccade::models
