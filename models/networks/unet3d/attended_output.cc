#include "models/networks/unet3d/attended_output.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include "kernels/common/parallel.h"
#include "models/device/transfer.h"
#include "models/networks/unet3d/maps.h"

namespace saccade::models {
namespace {

at::Tensor InDouble(const at::Tensor& x) { return x.to(at::kCPU).to(at::kDouble); }

// Returns [heads, C]: each head's part of w^T W.
at::Tensor Scores(const SiameseWeights& attention, const at::Tensor& transform) {
  at::Tensor rows = InDouble(transform);
  if (attention.w) rows = rows * InDouble(*attention.w).unsqueeze(1);
  return rows.unflatten(0, {attention.heads, -1}).sum(1);
}

// Adds sums over one line of positions: of x, and of x times each head's score. Scores are at the end of a
// row.
void AddLine(const float* x, const float* rows, int64_t positions, int64_t channels, int64_t row,
             int64_t heads, double* sums) {
  for (int64_t i = 0; i < positions; ++i, x += channels, rows += row) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += x[c];
    for (int64_t head = 0; head < heads; ++head) {
      const double score = rows[row - heads + head];
      double* weighted = sums + (1 + head) * channels;
      for (int64_t c = 0; c < channels; ++c) weighted[c] += score * x[c];
    }
  }
}

// On the CPU: sums each line, then the lines in order, so that the result does not depend on the threads.
at::Tensor Summed(const at::Tensor& x, const at::Tensor& rows, int64_t heads) {
  const VolumeSides sides = SidesOf(x);
  const int64_t channels = x.size(1);
  const at::Tensor lines = at::zeros({sides[0] * sides[1], 1 + heads, channels}, at::kDouble);
  const auto* features = x.const_data_ptr<float>();
  const auto* scores = rows.const_data_ptr<float>();
  auto* sums = lines.mutable_data_ptr<double>();
  const auto at = [](const at::Tensor& map, int64_t d, int64_t h) {
    return d * map.stride(2) + h * map.stride(3);
  };
  kernels::TorchParallel().run(lines.size(0), 16, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t d = line / sides[1];
      const int64_t h = line % sides[1];
      AddLine(features + at(x, d, h), scores + at(rows, d, h), sides[2], channels, rows.size(1), heads,
              sums + line * (1 + heads) * channels);
    }
  });
  return lines.sum(0);
}

// The same with ATen's operators.
at::Tensor Composed(const at::Tensor& x, const at::Tensor& rows, int64_t heads) {
  const at::Tensor scores = rows.narrow(1, rows.size(1) - heads, heads).flatten(2)[0];
  const at::Tensor factors = at::cat({at::ones_like(scores.narrow(0, 0, 1)), scores});
  return InDouble(at::matmul(factors, x.flatten(2)[0].t()));
}

// The attention's result as an affine function of the queries' scores, in float64.
struct Combined {
  at::Tensor slopes;  // [heads]: factor of a query's score
  at::Tensor offset;  // []: added at every position
};

Combined Combine(const SiameseWeights& attention, const at::Tensor& weight, const at::Tensor& means) {
  const at::Tensor value = InDouble(attention.value);
  const at::Tensor scaled = weight * attention.norm.scale;
  const auto by_head = [&](const at::Tensor& x) { return x.unflatten(0, {attention.heads, -1}); };
  at::Tensor offset = (weight * attention.norm.shift).sum();
  if (attention.global_term) {
    const at::Tensor keyed = means.narrow(0, 1, attention.heads).unsqueeze(1);
    offset = offset + (by_head(scaled) * (by_head(value) * keyed).sum(2)).sum();
  }
  return {by_head(scaled * (value * means[0]).sum(1)).sum(1), offset};
}

}  // namespace

AttendedOutput::AttendedOutput(const TensorMap& tensors, const std::string& attention,
                               const std::string& output, const UnetOptions& options)
    : weight_(tensors.at(output + ".weight").to(at::kDouble).flatten()), target_(tensors.target) {
  std::vector<at::Tensor> rows = {weight_.unsqueeze(0)};
  if (!attention.empty()) {
    attention_.emplace(tensors, attention, options);
    rows.push_back(Scores(*attention_, attention_->query));
    rows.push_back(Scores(*attention_, attention_->key));
  }
  // Uses float32 (or TF32), as scores are summed over all positions.
  if (target_.precision != Precision::kTf32) target_.precision = Precision::kFloat32;
  const at::Tensor weights = at::cat(rows);
  const at::Tensor bias = at::zeros({weights.size(0)}, at::kDouble);
  bias[0].copy_(tensors.at(output + ".bias")[0]);
  rows_.emplace(weights.view({weights.size(0), weights.size(1), 1, 1, 1}),
                Affine{at::ones({weights.size(0)}, at::kDouble), bias},
                ConvolutionOptions{.target = target_});
}

AttendedOutput::Pass::Pass(const AttendedOutput& output, const VolumeSides& sides)
    : output_(output),
      positions_(Positions(sides)),
      kept_(at::empty({1 + output.heads(), sides[0], sides[1], sides[2]},
                      at::TensorOptions(at::kFloat).device(DeviceOf(output.target_)))),
      sums_(at::zeros({1 + output.heads(), output.weight_.size(0)}, at::kDouble)) {}

void AttendedOutput::Pass::Add(const at::Tensor& x, const Part& within, const Part& core) {
  constexpr auto kLayout = at::MemoryFormat::ChannelsLast3d;
  const at::Tensor features = x.to(at::kFloat).contiguous(kLayout);
  const at::Tensor rows = View((*output_.rows_)(features).contiguous(kLayout), within);
  View(kept_, core).copy_(rows[0].narrow(0, 0, kept_.size(0)));
  if (!output_.attention_) return;
  const auto sum = features.is_cpu() ? Summed : Composed;
  sums_.add_(sum(View(features, within), rows, output_.heads()));
}

at::Tensor AttendedOutput::Pass::Finish() {
  at::Tensor answer = kept_[0];
  if (!output_.attention_) return answer;
  const auto [slopes, offset] =
      Combine(*output_.attention_, output_.weight_, sums_.div(static_cast<double>(positions_)));
  for (int64_t head = 0; head < output_.heads(); ++head) answer.add_(kept_[1 + head], slopes[head].item());
  return answer.add_(offset.item());
}

}  // namespace saccade::models
