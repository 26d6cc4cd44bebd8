#include "models/networks/psmnet/psmnet.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <optional>

#include "models/device/recorded.h"
#include "models/layers/efficient_attention.h"
#include "models/networks/psmnet/cost_volume.h"
#include "models/networks/psmnet/describe.h"
#include "models/networks/psmnet/features.h"
#include "models/networks/psmnet/hourglass.h"
#include "models/networks/psmnet/regression.h"
#include "models/networks/psmnet/table.h"
#include "models/tasks/stereo.h"

namespace saccade::models {
namespace {

constexpr int64_t kFeatureStride = 4;  // pictures to features

// With `exact` each pair is computed at its own size. The whole bucket with the size passed on would be one
// recording, but another answer: the pooling pyramid's windows and enlargements depend on the computed size.
constexpr RecordingLimits kExactLimits = {.recordings = 8, .passes = 3};

Convolution NormedConvolution3d(const TensorMap& tensors, const std::string& name, Activation activation) {
  return NormedConvolution(tensors, name + ".0", name + ".1", {.activation = activation});
}

class Psmnet : public Model {
 public:
  Psmnet(Description description, const PsmnetOptions& options, const LoadedWeights& weights)
      : description_(std::move(description)),
        options_(options),
        features_(options, weights.tensors),
        entry_{NormedConvolution3d(weights.tensors, "dres0.0", Activation::kRelu),
               NormedConvolution3d(weights.tensors, "dres0.2", Activation::kRelu),
               NormedConvolution3d(weights.tensors, "dres1.0", Activation::kRelu)},
        entry_residual_(NormedConvolution3d(weights.tensors, "dres1.2", Activation::kNone)) {
    for (const char* name : kHourglassNames) hourglasses_.emplace_back(weights.tensors, name);
    for (const char* name : kCostHeadNames) heads_.emplace_back(weights.tensors, name);
    // Only the attention can be absent from the weights.
    if (options.attention && weights.absent.empty()) {
      attention_.emplace(weights.tensors, kPsmnetAttention, options.heads, options.normalization);
    }
    pass_.emplace(
        weights.tensors.target, /*record=*/true,
        [this](const FeatureMap& pair) { return std::vector<FeatureMap>{Match(pair)}; },
        /*make_graph=*/nullptr, options.exact ? kExactLimits : RecordingLimits());
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    return MatchStereo(description_, batch, [this](const at::Tensor& pair, Size scaled) {
      return Disparities(pair, PsmnetSize(scaled));
    });
  }

 private:
  // `valid` is the size of the pair [2, 3, H, W] without its padding, rounded up to a multiple that the
  // network takes.
  at::Tensor Disparities(const at::Tensor& pair, Size valid) const {
    TORCH_CHECK(pair.size(2) % kPsmnetStride == 0 && pair.size(3) % kPsmnetStride == 0,
                description_.architecture, ": expected a bucket with sides that are multiples of ",
                kPsmnetStride, ", got ", pair.size(2), " x ", pair.size(3));
    // Pairs are computed one by one, so cutting off the padding gives the same result as zeroing it, with
    // less work.
    const at::Tensor input =
        options_.exact ? pair.narrow(2, 0, valid.height).narrow(3, 0, valid.width) : pair;
    return pass_->Fetch(input, Extents({valid, valid})).maps.front().values;
  }

  FeatureMap Match(const FeatureMap& pair) const {
    const Extents quarter = pair.extents.After({.stride = kFeatureStride});
    return {RegressDisparity(Costs(Entry(pair.values), quarter), kFeatureStride, options_.align_corners),
            pair.extents};
  }

  // Returns the first volume. To save memory, the volume of 2 C channels exists once; beside it only the
  // first convolution's output.
  at::Tensor Entry(const at::Tensor& pair) const {
    at::Tensor features = features_(pair);
    at::Tensor volume = ConcatenationVolume(features.narrow(0, 0, 1), features.narrow(0, 1, 1),
                                            options_.max_disparity / kFeatureStride);
    features.reset();
    volume = entry_[0](volume);
    volume = entry_[1](volume);
    const at::Tensor middle = entry_[2](volume);
    return entry_residual_.AddedTo(std::move(volume), middle);
  }

  // Returns the sum of the costs of all three hourglasses.
  at::Tensor Costs(at::Tensor entry, const Extents& picture) const {
    Hourglass::Maps first = hourglasses_[0](entry, {}, {});
    first.output.add_(entry);
    at::Tensor costs = heads_[0](first.output);

    Hourglass::Maps second = hourglasses_[1](std::move(first.output), first.presqueeze, first.postsqueeze);
    first.postsqueeze.reset();
    second.presqueeze.reset();
    second.output.add_(entry);
    costs.add_(heads_[1](second.output));

    at::Tensor last = hourglasses_[2](std::move(second.output), first.presqueeze, second.postsqueeze).output;
    last.add_(entry);
    entry.reset();
    if (attention_) last = Attended(last, picture);
    return costs.add_(heads_[2](last));
  }

  // Applies attention to the part of the volume that is picture. picture[0] is that part's height and width
  // in the volume.
  at::Tensor Attended(const at::Tensor& volume, const Extents& picture) const {
    if (!picture.kept_on_device() && picture[0] == Size{volume.size(3), volume.size(4)})
      return (*attention_)(volume);
    const at::Tensor sides = picture.AsValid(volume.device()).narrow(0, 0, 1);
    return (*attention_)(volume, at::cat({at::full({1, 1}, volume.size(2), sides.options()), sides}, 1));
  }

  Description description_;
  PsmnetOptions options_;
  PsmnetFeatures features_;
  std::vector<Convolution> entry_;
  Convolution entry_residual_;
  std::vector<Hourglass> hourglasses_;
  std::vector<CostHead> heads_;
  std::optional<EfficientAttention> attention_;
  std::optional<Recorded> pass_;
};

}  // namespace

std::unique_ptr<Model> LoadPsmnet(const std::string& architecture, const Options& options,
                                  const std::string& weights_path, const std::vector<std::string>& labels,
                                  const Target& target) {
  const PsmnetOptions parsed = ParsePsmnetOptions(architecture, options);
  LoadedWeights weights = LoadWeights(weights_path, RecordPsmnet(parsed).tensors());
  weights.tensors.target = target;
  Description description = DescribePsmnet(architecture, options, labels);
  if (parsed.attention && weights.absent.empty()) description.attention_layers = {kPsmnetAttention};
  for (const std::string& module : weights.absent) description.notes.push_back(AbsentNote(module));
  return std::make_unique<Psmnet>(std::move(description), parsed, weights);
}

}  // namespace saccade::models
