#include "models/layers/int8_convolution.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "models/layers/onednn_operator.h"

namespace saccade::models {
namespace {

using Int8Ints = c10::List<int64_t>;
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalText = std::optional<std::string_view>;
using Prepack = at::Tensor(at::Tensor, at::Tensor, double, int64_t, Int8Ints, Int8Ints, Int8Ints, int64_t,
                           std::optional<Int8Ints>);
using Int8Pointwise = at::Tensor(at::Tensor, double, int64_t, at::Tensor, at::Tensor, at::Tensor,
                                 std::optional<at::Tensor>, Int8Ints, Int8Ints, Int8Ints, int64_t, double,
                                 int64_t, std::optional<at::ScalarType>, std::string_view, Scalars,
                                 OptionalText);
using Int8PointwiseBinary = at::Tensor(at::Tensor, double, int64_t, at::Tensor, at::Tensor, at::Tensor,
                                       at::Tensor, std::optional<at::Tensor>, Int8Ints, Int8Ints, Int8Ints,
                                       int64_t, double, int64_t, std::optional<at::ScalarType>, double,
                                       int64_t, std::string_view, std::optional<at::Scalar>, OptionalText,
                                       Scalars, OptionalText);

// Maximum number of grids for which a bias is kept. Maps reach a layer from few others.
constexpr size_t kMaxGrids = 16;

Int8Ints AsList(const std::vector<int64_t>& values) { return Int8Ints(at::IntArrayRef(values)); }

Scalars Bounds(Activation activation) {
  Scalars bounds;
  if (activation == Activation::kRelu6) {
    bounds.push_back(at::Scalar(0.0));
    bounds.push_back(at::Scalar(6.0));
  }
  return bounds;
}

std::string_view NameOf(Activation activation) {
  if (activation == Activation::kRelu) return "relu";
  return activation == Activation::kRelu6 ? "hardtanh" : "none";
}

PackedWeight::Packer PackerFor(const at::Tensor& scale, const PackedWeight::Geometry& geometry) {
  return [scale, geometry](const at::Tensor& plain, const std::vector<int64_t>& shape) {
    static const auto prepack = OneDnnOperator<Prepack>("onednn::qconv_prepack");
    return prepack.call(plain, scale, /*x_scale=*/1.0, /*x_zp=*/0, AsList(geometry.stride),
                        AsList(geometry.padding), AsList(geometry.dilation), geometry.groups, AsList(shape));
  };
}

}  // namespace

Int8Weight QuantizedWeight(const at::Tensor& weight) {
  const at::Tensor rows = weight.to(at::kDouble).flatten(1);
  at::Tensor scale = rows.abs().amax(1).div(127);
  // A channel of zeros is exact with every scale.
  scale = scale.masked_fill(scale.eq(0), 1);
  const at::Tensor values = rows.div(scale.unsqueeze(1)).round().clamp(-127, 127).to(at::kChar);
  return {values.view(weight.sizes()), scale};
}

Int8Weight Scaled(const Int8Weight& weight, const at::Tensor& scale) {
  const at::Tensor product = weight.scale.to(at::kDouble).mul(scale);
  const at::Tensor sign = product.lt(0).to(at::kChar).mul(-2).add(1).view({-1, 1, 1, 1});
  return {weight.values.mul(sign), product.abs()};
}

Int8Convolution::Int8Convolution(const Int8Weight& weight, at::Tensor bias, PackedWeight::Geometry geometry,
                                 Options options)
    : options_(options),
      bias_(std::move(bias)),
      scale_(weight.scale.to(at::kFloat).contiguous()),
      zero_points_(at::zeros({weight.scale.size(0)}, at::kInt)),
      sums_(weight.values.to(at::kDouble).flatten(1).sum(1).mul(weight.scale)),
      padded_(std::any_of(geometry.padding.begin(), geometry.padding.end(), [](int64_t p) { return p > 0; })),
      groups_(geometry.groups),
      stride_(AsList(geometry.stride)),
      padding_(AsList(geometry.padding)),
      dilation_(AsList(geometry.dilation)),
      packed_(std::make_shared<PackedWeight>(weight.values.clone(at::MemoryFormat::ChannelsLast),
                                             PackerFor(scale_, geometry))) {}

at::Tensor Int8Convolution::BiasFor(const Grid& grid) const {
  const std::lock_guard lock(biases_->mutex);
  auto& by_grid = biases_->by_grid;
  const std::pair<double, int64_t> key(grid.scale, grid.zero);
  if (const auto found = by_grid.find(key); found != by_grid.end()) return found->second;
  if (by_grid.size() >= kMaxGrids) by_grid.clear();
  const double offset = grid.scale * static_cast<double>(grid.zero);
  return by_grid[key] = bias_.to(at::kDouble).sub(sums_, offset).to(at::kFloat);
}

// oneDNN is slower with a zero point of the input. Without padding every output sees all weights, so the zero
// point's part is the same everywhere and goes into the bias.
Int8Convolution::Input Int8Convolution::Prepared(const at::Tensor& x) const {
  const at::Tensor rounded = x.is_quantized() ? x : Quantized(x, options_.grids.input);
  const Grid grid{rounded.q_scale(), rounded.q_zero_point()};
  const at::Tensor bytes = BytesOf(rounded);
  if (grid.zero == 0 || padded_) return {bytes, grid, bias_};
  return {bytes, {grid.scale, 0}, BiasFor(grid)};
}

at::Tensor Int8Convolution::Result(const Input& input, at::ScalarType type, Activation activation) const {
  static const auto pointwise = OneDnnOperator<Int8Pointwise>("onednn::qconv2d_pointwise");
  const bool bytes = type == at::kByte;
  const Grid output = bytes ? options_.grids.output : Grid();
  const at::Tensor y =
      pointwise.call(input.bytes, input.grid.scale, input.grid.zero, packed_->For(input.bytes.sizes()),
                     scale_, zero_points_, input.bias, stride_, padding_, dilation_, groups_, output.scale,
                     output.zero, type, NameOf(activation), Bounds(activation), "");
  return bytes ? OnGrid(y, output) : y;
}

at::Tensor Int8Convolution::operator()(const at::Tensor& x) const {
  return Result(Prepared(x), options_.stays_int8 ? at::kByte : options_.floats, options_.activation);
}

at::Tensor Int8Convolution::AddedTo(at::Tensor other, const at::Tensor& x) const {
  static const auto pointwise = OneDnnOperator<Int8PointwiseBinary>("onednn::qconv2d_pointwise", "binary");
  if (!options_.stays_int8 || !other.is_quantized()) other = Floats(other, options_.floats);
  const Input input = Prepared(x);
  // oneDNN fuses only ReLU with a sum.
  if (options_.activation == Activation::kRelu6) {
    at::Tensor sum = Result(input, options_.floats, Activation::kNone).add_(Floats(other, options_.floats));
    sum.clamp_(0, 6);
    return options_.stays_int8 ? Quantized(sum, options_.grids.output) : sum;
  }
  const bool bytes = other.is_quantized();
  const Grid before = bytes ? Grid{other.q_scale(), other.q_zero_point()} : Grid();
  const Grid output = bytes ? options_.grids.output : Grid();
  const at::Tensor sum = pointwise.call(
      input.bytes, input.grid.scale, input.grid.zero, packed_->For(input.bytes.sizes()), scale_, zero_points_,
      bytes ? BytesOf(other) : other, input.bias, stride_, padding_, dilation_, groups_, output.scale,
      output.zero, bytes ? at::kByte : options_.floats, before.scale, before.zero, "sum", at::Scalar(1.0),
      NameOf(options_.activation), Scalars(), "");
  return bytes ? OnGrid(sum, output) : sum;
}

}  // namespace saccade::models
