#include "kernels/expatt/expatt_binding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include "kernels/common/arena.h"
#include "kernels/common/check.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/tile/tile.h"

namespace saccade::kernels {
namespace {

ExpattCall Bind(const at::Tensor& x, int64_t out_channels, ExpattKind kind, const OptionalTensor& valid) {
  ExpattCall call;
  call.out = ResultLike(x, out_channels);
  if (valid.has_value()) call.valid = valid->contiguous();
  ExpattProblem& problem = call.problem;
  problem.kind = kind;
  problem.batch = x.size(0);
  problem.channels = problem.map_channels = x.size(1);
  problem.out_channels = out_channels;
  problem.dtype = DtypeOf(x);
  problem.extent = ExtentOf(x, valid.has_value() ? OptionalTensor(call.valid) : std::nullopt);
  problem.x = MapOf(x);
  problem.out = OutputOf(call.out);
  return call;
}

template <typename A>
at::Tensor ProductOnCpu(const at::Tensor& a, const at::Tensor& b) {
  const int64_t row = RoundUp(b.size(1), kRowPadding);
  const at::Tensor right = at::zeros({b.size(0), row}, b.options());
  right.narrow(1, 0, b.size(1)).copy_(b);
  const at::Tensor out = at::empty({a.size(0), row}, b.options());
  TileCodeFor<A>(BestCpuIsa())
      .product(a.size(0), b.size(1), a.size(1), {a.const_data_ptr<A>(), a.size(1), 1},
               right.const_data_ptr<A>(), row, out.mutable_data_ptr<A>(), row, false);
  return out.narrow(1, 0, b.size(1)).contiguous();
}

// On the CPU, at::matmul's order of summation depends on the number of threads, which would change the
// result's bits.
at::Tensor Product(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu()) return at::matmul(a, b);
  return b.scalar_type() == at::kDouble ? ProductOnCpu<double>(a, b) : ProductOnCpu<float>(a, b);
}

at::Tensor MatrixOf(const at::Tensor& weight, const at::Tensor& x) { return Prepared(weight, x).flatten(1); }

}  // namespace

ExpattCall BindExpatt(const at::Tensor& v, ExpattKind kind, const OptionalTensor& valid) {
  return Bind(v, v.size(1), kind, valid);
}

ExpattCall BindExpattModule(const at::Tensor& x, const ExpattWeights& weights, ExpattKind kind, double sigma,
                            const OptionalTensor& valid) {
  at::Tensor first = MatrixOf(weights.value, x);
  const int64_t channels = first.size(1);
  const int64_t value_channels = first.size(0);
  const int64_t out_channels = weights.out.has_value() ? weights.out->size(0) : value_channels;
  ExpattCall call = Bind(x, out_channels, kind, valid);
  ExpattProblem& problem = call.problem;
  problem.sigma = sigma;

  // The rows of the map sum to one, so a bias of the values passes through it unchanged.
  if (weights.value_bias.has_value()) call.bias = Prepared(*weights.value_bias, x);
  at::Tensor second;
  if (weights.out.has_value()) {
    second = MatrixOf(*weights.out, x);
    if (call.bias.defined()) call.bias = Product(second, call.bias.unsqueeze(1)).squeeze(1);
    if (out_channels * channels <= value_channels * (channels + out_channels)) {
      first = Product(second, first);
      second = at::Tensor();
    }
  }
  if (weights.out_bias.has_value()) {
    const at::Tensor bias = Prepared(*weights.out_bias, x);
    call.bias = call.bias.defined() ? call.bias + bias : bias;
  }

  // A single matrix is applied on the side where the map then has fewer channels; two matrices go on either
  // side.
  if (second.defined()) {
    call.before = first;
    call.after = second;
    problem.map_channels = value_channels;
  } else if (out_channels <= channels) {
    call.before = first;
    problem.map_channels = out_channels;
  } else {
    call.after = first;
  }
  const auto data_of = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr() : nullptr;
  };
  problem.before = data_of(call.before);
  problem.after = data_of(call.after);
  problem.bias = data_of(call.bias);
  return call;
}

}  // namespace saccade::kernels
