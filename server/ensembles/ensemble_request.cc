#include "server/ensembles/ensemble_request.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

bool Fits(const Tensor& tensor, const TensorSpec& declared, bool batched) {
  const size_t first = batched ? 1 : 0;
  if (tensor.type != declared.type || tensor.shape.size() != declared.dims.size() + first) return false;
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    if (declared.dims[i] != -1 && declared.dims[i] != tensor.shape[i + first]) return false;
  }
  return true;
}

std::string Expected(const TensorSpec& declared, bool batched) {
  std::vector<int64_t> shape = declared.dims;
  if (batched) shape.insert(shape.begin(), -1);
  return absl::StrCat(NameOf(declared.type), " ", ShapeText(shape));
}

std::string Found(const Tensor& tensor) {
  return absl::StrCat(NameOf(tensor.type), " ", ShapeText(tensor.shape));
}

std::string NamesOf(const std::vector<TensorSpec>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const TensorSpec& tensor) {
    absl::StrAppend(out, "'", tensor.name, "'");
  });
}

const TensorSpec* Find(const std::vector<TensorSpec>& tensors, const std::string& name) {
  const auto named = [&name](const TensorSpec& tensor) { return tensor.name == name; };
  const auto found = std::find_if(tensors.begin(), tensors.end(), named);
  return found == tensors.end() ? nullptr : &*found;
}

absl::Status CheckInput(const Tensor& input, const ModelSettings& ensemble, int64_t batch) {
  const TensorSpec* const declared = Find(ensemble.inputs, input.name);
  const bool batched = ensemble.has_batch_dimension;
  const std::string subject = absl::StrCat("input ", Shown(input.name));
  if (declared == nullptr) {
    return Invalid("inputs", absl::StrCat("no input is named ", Shown(input.name), "; the ensemble's are ",
                                          NamesOf(ensemble.inputs)));
  }
  if (!Fits(input, *declared, batched)) {
    return Invalid(subject, absl::StrCat("is ", Found(input), ", expected ", Expected(*declared, batched)));
  }
  if (!batched) return absl::OkStatus();
  const int64_t max = ensemble.batching.max_batch_size;
  if (input.shape[0] < 1 || input.shape[0] > max) {
    return Invalid(subject, absl::StrCat("the batch is ", input.shape[0], ", expected 1 to ", max,
                                         " (the ensemble's max_batch_size)"));
  }
  if (input.shape[0] == batch) return absl::OkStatus();
  return Invalid(subject,
                 absl::StrCat("the batch is ", input.shape[0], ", but that of the first input is ", batch));
}

}  // namespace

absl::Status CheckRequest(const TensorCall& call, const ModelSettings& ensemble) {
  std::set<std::string> sent;
  for (const Tensor& input : call.inputs) {
    const int64_t batch = call.inputs[0].shape.empty() ? 0 : call.inputs[0].shape[0];
    if (absl::Status good = CheckInput(input, ensemble, batch); !good.ok()) return good;
    if (sent.insert(input.name).second) continue;
    return Invalid("inputs", absl::StrCat("input ", Shown(input.name), " is given twice"));
  }
  for (const TensorSpec& input : ensemble.inputs) {
    if (input.optional || sent.count(input.name) > 0) continue;
    return Invalid("inputs", absl::StrCat("the ensemble's input '", input.name, "' is missing"));
  }
  for (const WantedOutput& output : call.outputs) {
    if (Find(ensemble.outputs, output.name) != nullptr) continue;
    return Invalid("outputs", absl::StrCat("no output is named ", Shown(output.name), "; the ensemble's are ",
                                           NamesOf(ensemble.outputs)));
  }
  return absl::OkStatus();
}

int64_t ItemsOf(const TensorCall& call, const ModelSettings& ensemble) {
  if (!ensemble.has_batch_dimension || call.inputs.empty()) return 1;
  return call.inputs[0].shape[0];
}

absl::Status CheckAnswer(const Tensor& output, const TensorSpec& declared, bool has_batch_dimension) {
  if (Fits(output, declared, has_batch_dimension)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("output '", declared.name, "' is ", Found(output),
                                          ", but the ensemble declares ",
                                          Expected(declared, has_batch_dimension)));
}

}  // namespace saccade::server
