#include "models/networks/residual/residual.h"

#include <optional>
#include <utility>

#include "models/device/recorded.h"
#include "models/device/transfer.h"
#include "models/layers/explicit_maps.h"
#include "models/layers/max_pool.h"
#include "models/networks/residual/describe.h"
#include "models/networks/residual/spatial.h"
#include "models/networks/residual/table.h"
#include "models/tasks/classify.h"

namespace saccade::models {
namespace {

// A block with its weights. Immutable.
class ResidualPass {
 public:
  ResidualPass(const ResidualBlock& block, const ResidualOptions& options, const TensorMap& tensors) {
    if (!block.basic) {
      first_ =
          NormedConvolution(tensors, block.name + ".conv1", block.name + ".bn1",
                            {.activation = kRelu, .stays_int8 = FeedsConvolution(block.spatial.front())});
      third_ = NormedConvolution(tensors, block.name + ".conv3", block.name + ".bn3",
                                 {.activation = kRelu, .stays_int8 = true});
    }
    for (const SpatialLayer& layer : block.spatial) {
      const bool last = block.basic && &layer == &block.spatial.back();
      spatial_.emplace_back(layer, options, tensors, /*relu=*/!last, /*stays_int8=*/true);
    }
    if (block.projected) {
      shortcut_ = NormedConvolution(tensors, block.name + ".downsample.0", block.name + ".downsample.1",
                                    {.stride = block.stride, .stays_int8 = true});
    }
  }

  at::Tensor operator()(at::Tensor x) const {
    const at::Tensor y = spatial_.front()(first_ ? (*first_)(x) : x);
    // Adds into the shortcut's memory, which is not used afterwards.
    at::Tensor shortcut = Shortcut(std::move(x));
    return third_ ? third_->AddedTo(std::move(shortcut), y) : spatial_.back().AddedTo(std::move(shortcut), y);
  }

 private:
  static constexpr Activation kRelu = Activation::kRelu;

  static bool FeedsConvolution(const SpatialLayer& layer) { return layer.kind == Spatial::kConvolution; }

  at::Tensor Shortcut(at::Tensor x) const {
    if (shortcut_) return (*shortcut_)(x);
    return x;
  }

  std::optional<Convolution> first_, third_, shortcut_;
  std::vector<SpatialPath> spatial_;
};

class ResidualNetwork : public Model {
 public:
  ResidualNetwork(Description description, const ResidualPlan& plan, TensorMap tensors)
      : description_(std::move(description)),
        target_(tensors.target),
        pooled_(!plan.options.cifar),
        stem_(NormedConvolution(tensors, "conv1", "bn1",
                                {.stride = ResidualStemWindow(plan.options).stride,
                                 .activation = Activation::kRelu,
                                 .stays_int8 = true})),
        classifier_(LinearConvolution(tensors, "fc")),
        logits_(tensors.target, /*record=*/true, [this](const FeatureMap& x) { return Logits(x); }) {
    for (const ResidualBlock& block : plan.blocks)
      blocks_.emplace_back(block, plan.options, Taken(tensors, block.name + "."));
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    return Classify(description_, batch, logits_);
  }

 private:
  std::vector<FeatureMap> Logits(const FeatureMap& pictures) const {
    at::Tensor x = stem_(pictures.values);
    if (pooled_) x = MaxPool(x, kResidualPool);
    for (const ResidualPass& block : blocks_) x = block(std::move(x));
    x = Floats(x, TypeOf(target_));
    return {{classifier_(x.mean({2, 3}, /*keepdim=*/true)), pictures.extents}};
  }

  Description description_;
  Target target_;
  bool pooled_;
  Convolution stem_;
  std::vector<ResidualPass> blocks_;
  Convolution classifier_;
  Recorded logits_;
};

}  // namespace

std::unique_ptr<Model> LoadResidual(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target) {
  const ResidualPlan plan = MakeResidualPlan(ParseResidualOptions(architecture, options));
  const NetworkTensors expected = ResidualTensors(architecture, options);
  TensorMap tensors = LoadWeights(weights_path, expected.expected, expected.names).tensors;
  tensors.target = target;
  Description description = DescribeResidual(architecture, options, labels);
  for (const ResidualBlock& block : plan.blocks) {
    for (const SpatialLayer& layer : block.spatial) {
      if (layer.kind != Spatial::kConvolution) description.attention_layers.push_back(layer.name);
      description.attention_by_position = description.attention_by_position || layer.kind == Spatial::kGsa;
    }
  }
  return std::make_unique<ResidualNetwork>(std::move(description), plan, std::move(tensors));
}

}  // namespace saccade::models
