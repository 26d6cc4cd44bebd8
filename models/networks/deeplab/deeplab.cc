#include "models/networks/deeplab/deeplab.h"

#include <utility>

#include "models/networks/deeplab/describe.h"
#include "models/networks/deeplab/network.h"
#include "models/networks/deeplab/table.h"

namespace saccade::models {
namespace {

class DeepLab : public Model {
 public:
  DeepLab(Description description, const DeepLabOptions& options, TensorMap tensors)
      : description_(std::move(description)), network_(options, std::move(tensors)) {}

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    return Segment(description_, batch, [this](const Batch& pictures) { return network_(pictures); });
  }

 private:
  Description description_;
  DeepLabNetwork network_;
};

}  // namespace

std::unique_ptr<Model> LoadDeepLab(const std::string& architecture, const Options& options,
                                   const std::string& weights_path, const std::vector<std::string>& labels,
                                   const Target& target) {
  const DeepLabOptions parsed = ParseDeepLabOptions(architecture, options);
  Description description = DescribeDeepLab(architecture, options, labels);
  if (parsed.head != DeepLabHead::kAspp) description.attention_layers = {kDeepLabAttention};
  description.attention_by_position =
      parsed.head == DeepLabHead::kAttention || parsed.head == DeepLabHead::kAttentionPool;
  const NetworkTensors tensors = DeepLabTensors(architecture, options);
  LoadedWeights weights = LoadWeights(weights_path, tensors.expected, tensors.names);
  weights.tensors.target = target;
  return std::make_unique<DeepLab>(std::move(description), parsed, std::move(weights.tensors));
}

}  // namespace saccade::models
