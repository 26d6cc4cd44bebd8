#include "models/networks/mobile/mobile.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "models/device/recorded.h"
#include "models/layers/explicit_maps.h"
#include "models/networks/mobile/describe.h"
#include "models/networks/mobile/layers.h"
#include "models/networks/mobile/modules.h"
#include "models/networks/mobile/parameters.h"
#include "models/tasks/classify.h"

namespace saccade::models {
namespace {

// Returns our name for a parameter of torchvision's MobileNetV2, or else `name` itself.
std::string KnownName(const std::string& name) {
  constexpr int kHeadIndex = 18;
  if (name.starts_with("classifier.1.")) return "classifier." + name.substr(13);
  constexpr std::string_view kFeaturesPrefix = "features.";
  if (!name.starts_with(kFeaturesPrefix)) return name;
  int index = 0;
  const char* const end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + kFeaturesPrefix.size(), end, index);
  if (error != std::errc() || after == end || *after != '.') return name;
  std::string rest(after + 1, end);
  const auto layer = [&](const std::string& beginning, const char* known) {
    if (!rest.starts_with(beginning)) return false;
    rest = known + rest.substr(beginning.size());
    return true;
  };
  if (index == 0 || index == kHeadIndex) {
    layer("0.", "conv.") || layer("1.", "bn.");
    return (index == 0 ? "stem." : "head.") + rest;
  }
  if (index == 1) {  // expansion by 1: no expand layer
    layer("conv.0.0.", "depthwise.conv.") || layer("conv.0.1.", "depthwise.bn.") ||
        layer("conv.1.", "project.conv.") || layer("conv.2.", "project.bn.");
  } else {
    layer("conv.0.0.", "expand.conv.") || layer("conv.0.1.", "expand.bn.") ||
        layer("conv.1.0.", "depthwise.conv.") || layer("conv.1.1.", "depthwise.bn.") ||
        layer("conv.2.", "project.conv.") || layer("conv.3.", "project.bn.");
  }
  return "blocks." + std::to_string(index - 1) + "." + rest;
}

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

// Weights trained with older versions have a radius, which was not used, for every kind of map.
std::vector<std::string> UnusedRadiiOf(const MobilePlan& plan) {
  std::vector<std::string> names;
  if (plan.options.map.empty() || HasRadius(plan.options.map)) return names;
  for (const Block& block : plan.blocks) names.push_back(ExpandName(block) + ".sigma");
  return names;
}

}  // namespace

std::unique_ptr<Model> LoadMobile(const std::string& architecture, const Options& options,
                                  const std::string& weights_path, const std::vector<std::string>& labels,
                                  const Target& target) {
  const MobilePlan plan = MakeMobilePlan(ParseMobileOptions(architecture, options));
  const WeightNames names{.rename = KnownName, .unused = UnusedRadiiOf(plan)};
  TensorMap tensors = LoadWeights(weights_path, MobileParameters(plan), names).tensors;
  tensors.target = target;
  Description description = DescribeMobile(architecture, options, labels);
  description.attention_layers = AttentionLayers(plan);
  description.attention_by_position =
      !description.attention_layers.empty() && AttendsByPosition(plan.options.attention);
  return std::make_unique<MobileNetwork>(std::move(description), plan, tensors);
}

}  // namespace saccade::models
