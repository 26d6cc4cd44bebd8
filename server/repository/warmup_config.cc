#include "server/repository/warmup_config.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/repository/tensor_config.h"

namespace saccade::server {
namespace {

constexpr int kMaxWarmups = 64;
constexpr int kMaxCount = 10'000;

absl::Status ReadInput(const inference::ModelWarmup::Input& message, const std::string& field,
                       const ConfigCheck& check, WarmupInput* input) {
  using Message = inference::ModelWarmup::Input;
  const auto type = ReadDataType(message.data_type(), field + ".data_type", check);
  if (!type.ok()) return type.status();
  input->type = *type;
  input->dims.assign(message.dims().begin(), message.dims().end());
  if (absl::Status status = CheckDims(input->dims, 1, false, field + ".dims", check); !status.ok())
    return status;
  switch (message.input_data_type_case()) {
    case Message::kZeroData:
      input->data = WarmupInput::Data::kZero;
      return absl::OkStatus();
    case Message::kRandomData:
      input->data = WarmupInput::Data::kRandom;
      // As in Triton, random data of type BYTES is treated as zero data.
      if (input->type == DataType::kBytes) input->data = WarmupInput::Data::kZero;
      return absl::OkStatus();
    case Message::kInputDataFile:
      input->data = WarmupInput::Data::kFile;
      input->file_path = message.input_data_file();
      return CheckFileName(field + ".input_data_file", input->file_path, check);
    case Message::INPUT_DATA_TYPE_NOT_SET:
      break;
  }
  return check.Error(field, "has no data; expected zero_data: true, random_data: true or input_data_file");
}

absl::Status ReadWarmup(const inference::ModelWarmup& message, const std::string& field,
                        const ConfigCheck& check, const ModelSettings& settings, Warmup* warmup) {
  warmup->name = message.name();
  if (absl::Status status = CheckTensorName(warmup->name, field + ".name", check); !status.ok())
    return status;
  warmup->batch_size = std::max<int64_t>(1, message.batch_size());
  if (warmup->batch_size > settings.batching.max_batch_size) {
    return check.Error(field + ".batch_size", "is ", warmup->batch_size, ", expected at most ",
                       settings.batching.max_batch_size,
                       settings.has_batch_dimension ? ", the max_batch_size" : " where max_batch_size is 0");
  }
  absl::Status status = check.Range(field + ".count", message.count(), 0, kMaxCount);
  if (!status.ok()) return status;
  warmup->count = std::max(1, static_cast<int>(message.count()));
  if (message.inputs().empty()) return check.Error(field + ".inputs", "is missing; name the model's inputs");
  const std::map<std::string, inference::ModelWarmup::Input> inputs(message.inputs().begin(),
                                                                    message.inputs().end());
  for (const auto& [name, value] : inputs) {
    const std::string entry = MapEntryPath(field + ".inputs", name);
    WarmupInput input;
    input.name = name;
    if (status = CheckTensorName(name, entry, check); !status.ok()) return status;
    if (status = ReadInput(value, entry, check, &input); !status.ok()) return status;
    warmup->inputs.push_back(std::move(input));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadWarmups(const inference::ModelConfig& config, const ConfigCheck& check,
                         ModelSettings* settings) {
  if (config.model_warmup_size() > kMaxWarmups) {
    return check.Error("model_warmup", "is given ", config.model_warmup_size(), " times, expected at most ",
                       kMaxWarmups);
  }
  for (int i = 0; i < config.model_warmup_size(); ++i) {
    Warmup warmup;
    absl::Status status =
        ReadWarmup(config.model_warmup(i), absl::StrCat("model_warmup[", i, "]"), check, *settings, &warmup);
    if (!status.ok()) return status;
    settings->warmups.push_back(std::move(warmup));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
