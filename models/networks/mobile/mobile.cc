#include "models/networks/mobile/mobile.h"

#include <utility>

#include "models/device/recorded.h"
#include "models/networks/mobile/describe.h"
#include "models/networks/mobile/layers.h"
#include "models/networks/mobile/modules.h"
#include "models/tasks/classify.h"
#include "models/weights/weights.h"

namespace saccade::models {
namespace {

// Whether each position has its own attention weights, as in regular attention.
bool AttendsByPosition(MobileAttention attention) {
  return attention == MobileAttention::kSoftmax || attention == MobileAttention::kPool ||
         attention == MobileAttention::kOverN;
}

std::vector<std::string> AttentionLayers(const MobilePlan& plan) {
  std::vector<std::string> layers;
  for (const Block& block : plan.blocks) {
    if (block.attended > 0) layers.push_back(ExpandName(block));
    // Squeeze-and-excite weights channels, not positions: there is no map to show.
    if (block.module == Module::kAttention && plan.options.attention != MobileAttention::kSqueeze)
      layers.push_back(AttentionName(block));
  }
  return layers;
}

class MobileNetwork : public Model {
 public:
  MobileNetwork(Description description, const MobilePlan& plan, const TensorMap& tensors)
      : description_(std::move(description)),
        stem_(MakeConvolution(tensors, "stem.",
                              {.stride = 2, .activation = Activation::kRelu6, .stays_int8 = true})),
        head_(MakeConvolution(tensors, "head.", {.activation = Activation::kRelu6})),
        classifier_(LinearConvolution(tensors, "classifier")),
        logits_(tensors.target, /*record=*/true, [this](const FeatureMap& x) { return Logits(x); }) {
    for (const Block& block : plan.blocks) modules_.emplace_back(block, plan.options, tensors);
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    return Classify(description_, batch, logits_);
  }

 private:
  std::vector<FeatureMap> Logits(const FeatureMap& pictures) const {
    at::Tensor x = stem_(pictures.values);
    for (const MobileModule& module : modules_) x = module(x);
    return {{classifier_(head_(x).mean({2, 3}, /*keepdim=*/true)), pictures.extents}};
  }

  Description description_;
  Convolution stem_;
  std::vector<MobileModule> modules_;
  Convolution head_;
  Convolution classifier_;
  Recorded logits_;
};

}  // namespace

std::unique_ptr<Model> LoadMobile(const std::string& architecture, const Options& options,
                                  const std::string& weights_path, const std::vector<std::string>& labels,
                                  const Target& target) {
  const MobilePlan plan = MakeMobilePlan(ParseMobileOptions(architecture, options));
  const NetworkTensors expected = MobileTensors(architecture, options);
  TensorMap tensors = LoadWeights(weights_path, expected.expected, expected.names).tensors;
  tensors.target = target;
  Description description = DescribeMobile(architecture, options, labels);
  description.attention_layers = AttentionLayers(plan);
  description.attention_by_position =
      !description.attention_layers.empty() && AttendsByPosition(plan.options.attention);
  return std::make_unique<MobileNetwork>(std::move(description), plan, tensors);
}

}  // namespace saccade::models
