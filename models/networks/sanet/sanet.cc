#include "models/networks/sanet/sanet.h"

#include <ATen/ops/ones_like.h>

#include "models/layers/device.h"
#include "models/layers/recorded.h"
#include "models/networks/sanet/describe.h"
#include "models/networks/sanet/layers.h"
#include "models/networks/sanet/modules.h"
#include "models/networks/sanet/parameters.h"
#include "models/tasks/classify.h"

namespace saccade::models {
namespace {

Convolution MakeClassifier(const TensorMap& tensors) {
  const at::Tensor weight = tensors.at("classifier.weight");
  const at::Tensor bias = tensors.at("classifier.bias").to(at::kDouble);
  return {weight.view({weight.size(0), weight.size(1), 1, 1}),
          {at::ones_like(bias), bias},
          {.target = tensors.target}};
}

class Sanet : public Model {
 public:
  Sanet(Description description, const SanetPlan& plan, const TensorMap& tensors)
      : description_(std::move(description)),
        stem_(MakeConvolution(tensors, "stem.", {.stride = 2, .activation = Activation::kRelu6})),
        head_(MakeConvolution(tensors, "head.", {.activation = Activation::kRelu6})),
        classifier_(MakeClassifier(tensors)),
        logits_(tensors.target, /*record=*/true, [this](const FeatureMap& x) { return Logits(x); }) {
    for (const Block& block : plan.blocks) modules_.emplace_back(block, plan.options.global_term, tensors);
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    return Classify(description_, batch, [this](const Batch& pictures) {
      return Fetched(logits_(pictures.pixels, Extents::Of(pictures.placements)).front().values);
    });
  }

 private:
  std::vector<FeatureMap> Logits(const FeatureMap& pictures) const {
    at::Tensor x = stem_(pictures.values);
    for (const SanetModule& module : modules_) x = module(x);
    return {{classifier_(head_(x).mean({2, 3}, /*keepdim=*/true)), pictures.extents}};
  }

  Description description_;
  Convolution stem_;
  std::vector<SanetModule> modules_;
  Convolution head_;
  Convolution classifier_;
  Recorded logits_;
};

}  // namespace

std::unique_ptr<Model> LoadSanet(const std::string& architecture, const Options& options,
                                 const std::string& weights_path, const std::vector<std::string>& labels,
                                 const Target& target) {
  const SanetPlan plan = MakeSanetPlan(ParseSanetOptions(options));
  TensorMap tensors = LoadWeights(weights_path, SanetParameters(plan)).tensors;
  tensors.target = target;
  return std::make_unique<Sanet>(DescribeSanet(architecture, options, labels), plan, tensors);
}

}  // namespace saccade::models
