#include "server/inference/program_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/classification.h"
#include "server/core/errors.h"

namespace saccade::server {

absl::Status CheckProgramOutputs(const std::vector<WantedOutput>& wanted, const ModelSettings& settings) {
  for (const WantedOutput& one : wanted) {
    const auto named = [&one](const TensorSpec& spec) { return spec.name == one.name; };
    if (std::any_of(settings.outputs.begin(), settings.outputs.end(), named)) continue;
    const auto name = [](std::string* out, const TensorSpec& spec) {
      absl::StrAppend(out, "'", spec.name, "'");
    };
    return Invalid("outputs", absl::StrCat("no output is named ", Shown(one.name), "; the model's ",
                                           settings.outputs.size() == 1 ? "is " : "are ",
                                           absl::StrJoin(settings.outputs, ", ", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> ChooseOutputs(std::vector<Tensor> outputs,
                                                  const std::vector<WantedOutput>& wanted,
                                                  const ModelSettings& settings) {
  if (wanted.empty()) return outputs;
  std::vector<Tensor> chosen;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto named = [&](const WantedOutput& one) { return one.name == outputs[i].name; };
    const auto found = std::find_if(wanted.begin(), wanted.end(), named);
    if (found == wanted.end()) continue;
    if (found->classes == 0) {
      chosen.push_back(std::move(outputs[i]));
      continue;
    }
    auto classified =
        Classify(outputs[i], found->classes, settings.outputs[i].labels, settings.has_batch_dimension);
    if (!classified.ok()) return classified.status();
    chosen.push_back(*std::move(classified));
  }
  return chosen;
}

std::vector<TensorDescription> DescribeTensors(const std::vector<TensorSpec>& specs, bool batched) {
  std::vector<TensorDescription> described;
  for (const TensorSpec& spec : specs) {
    TensorDescription tensor{
        .name = spec.name, .type = spec.type, .shape = spec.dims, .optional = spec.optional};
    if (batched) tensor.shape.insert(tensor.shape.begin(), -1);
    described.push_back(std::move(tensor));
  }
  return described;
}

}  // namespace saccade::server
