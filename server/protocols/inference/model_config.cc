#include "server/protocols/inference/model_config.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Indexed by DataType.
constexpr std::array<inference::DataType, 14> kTypes = {
    inference::TYPE_BOOL,   inference::TYPE_UINT8, inference::TYPE_UINT16, inference::TYPE_UINT32,
    inference::TYPE_UINT64, inference::TYPE_INT8,  inference::TYPE_INT16,  inference::TYPE_INT32,
    inference::TYPE_INT64,  inference::TYPE_FP16,  inference::TYPE_FP32,   inference::TYPE_FP64,
    inference::TYPE_STRING, inference::TYPE_BF16};

// A tensor with one value per item has an extent of 1 in the configuration, which a reshape removes for the
// model.
template <typename To>
void Describe(const TensorDescription& tensor, bool batched, To* to) {
  to->set_name(tensor.name);
  to->set_data_type(kTypes.at(static_cast<size_t>(tensor.type)));
  for (size_t i = batched ? 1 : 0; i < tensor.shape.size(); ++i) to->add_dims(tensor.shape[i]);
  if (!to->dims().empty()) return;
  to->add_dims(1);
  to->mutable_reshape();
}

void CompleteInstances(const ModelSettings& settings, inference::ModelConfig& config) {
  if (config.instance_group_size() > 0) return;
  inference::ModelInstanceGroup& group = *config.add_instance_group();
  group.set_name(absl::StrCat(settings.name, "_0"));
  group.set_count(settings.instances);
  group.set_kind(inference::ModelInstanceGroup::KIND_CPU);
}

}  // namespace

absl::StatusOr<inference::ModelConfig> ConfigOf(const ModelSettings& settings, const ModelInterface& model) {
  inference::ModelConfig config;
  if (!config.ParseFromString(settings.config)) {
    return absl::InternalError(
        absl::StrCat("the configuration of model '", settings.name, "' cannot be read back"));
  }
  if (config.input().empty()) {
    for (const auto& input : model.inputs) Describe(input, settings.has_batch_dimension, config.add_input());
  }
  if (config.output().empty()) {
    for (const auto& output : model.outputs)
      Describe(output, settings.has_batch_dimension, config.add_output());
  }
  if (!config.has_version_policy()) config.mutable_version_policy()->mutable_latest()->set_num_versions(1);
  if (config.scheduling_choice_case() == inference::ModelConfig::SCHEDULING_CHOICE_NOT_SET &&
      settings.has_batch_dimension) {
    config.mutable_dynamic_batching();
  }
  if (settings.backend != Backend::kEnsemble) CompleteInstances(settings, config);
  return config;
}

absl::StatusOr<inference::ModelConfig> ConfigOf(const Catalog& catalog, const Inference& inference,
                                                absl::string_view name, absl::string_view version) {
  const auto number = catalog.VersionOf(name, version);
  if (!number.ok()) return number.status();
  const auto model = catalog.FindReady(name, *number);
  if (!model.ok()) return model.status();
  const auto described = inference.Describe((*model)->name(), (*model)->version());
  if (!described.ok()) return described.status();
  return ConfigOf((*model)->settings(), *described);
}

}  // namespace saccade::server
