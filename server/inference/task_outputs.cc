#include "server/inference/task_outputs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/classification.h"
#include "server/core/errors.h"

namespace saccade::server {
namespace {

struct Output {
  const char* name;
  DataType type;
  // -1 if it depends on the request.
  absl::InlinedVector<int64_t, 5> shape;
  absl::StatusOr<Values> (*make)(const HeldResponse&, ItemsForm);
  // Whether it is returned if the request names no outputs.
  bool unasked = true;
  // Whether its last extent counts the model's classes.
  bool per_class = false;
};

const std::vector<std::string>& LabelsOfIndices(const Output& output, const models::Description& model) {
  static const std::vector<std::string> none;
  return output.per_class ? model.labels : none;
}

template <absl::StatusOr<Values> (*kMake)(const HeldResponse&)>
absl::StatusOr<Values> OfOneSize(const HeldResponse& response, ItemsForm /*form*/) {
  return kMake(response);
}

// `kMake` returns Values or absl::StatusOr<Values>.
template <auto kMake>
absl::StatusOr<Values> Items(const HeldResponse& response, ItemsForm form) {
  return kMake(response, form);
}

using Outputs = absl::InlinedVector<Output, 5>;

Outputs DetectionOutputs(ItemsForm form) {
  const bool flat = form == ItemsForm::kFlat;
  return {{flat ? "batch_splits" : "num_detections", DataType::kInt64, {-1}, Items<DetectionCounts>},
          {"boxes", DataType::kFp32, {-1, -1, 4}, Items<Boxes>},
          {"scores", DataType::kFp32, {-1, -1}, Items<Scores>},
          {"labels", DataType::kInt64, {-1, -1}, Items<Labels>},
          // Many times as large as all other outputs together.
          {"masks", DataType::kFp32, {-1, -1, -1, -1}, Items<Masks>, /*unasked=*/false}};
}

Outputs ActionOutputs(ItemsForm form) {
  const bool flat = form == ItemsForm::kFlat;
  return {{flat ? "batch_splits" : "num_actions", DataType::kInt64, {-1}, Items<ActionCounts>},
          {"segments", DataType::kFp32, {-1, -1, 2}, Items<ActionSegments>},
          {"scores", DataType::kFp32, {-1, -1}, Items<ActionScores>},
          {"labels", DataType::kInt64, {-1, -1}, Items<ActionLabels>}};
}

// In flat form, the extents of pictures and their items are merged.
Outputs InForm(Outputs padded, ItemsForm form) {
  if (form == ItemsForm::kPadded) return padded;
  for (Output& output : padded) {
    if (output.shape.size() > 1) output.shape.erase(output.shape.begin());
  }
  return padded;
}

Outputs OutputsOf(const models::Description& model, ItemsForm form) {
  switch (model.task) {
    case models::Task::kClassification:
      return {{"logits",
               DataType::kFp32,
               {-1, model.classes},
               OfOneSize<Logits>,
               /*unasked=*/true,
               /*per_class=*/true}};
    case models::Task::kDetection:
      return InForm(DetectionOutputs(form), form);
    case models::Task::kSegmentation:
      return {{"label_map", DataType::kUint8, {-1, -1, -1}, OfOneSize<LabelMaps>},
              {"areas",
               DataType::kInt64,
               {-1, model.classes},
               OfOneSize<Areas>,
               /*unasked=*/true,
               /*per_class=*/true}};
    case models::Task::kStereo:
      return {{"disparity", DataType::kFp32, {-1, -1, -1}, OfOneSize<DisparityMaps>}};
    case models::Task::kActions:
      return InForm(ActionOutputs(form), form);
    case models::Task::kRestoration:
      return {{"restored", DataType::kFp32, {-1, -1, -1, -1}, OfOneSize<RestoredVolumes>}};
    case models::Task::kDepth:
      return {{"depth", DataType::kFp32, {-1, -1, -1}, OfOneSize<DepthMaps>}};
    case models::Task::kEmbedding:
      return {{"embedding", DataType::kFp32, {-1, -1}, OfOneSize<Embeddings>}};
    case models::Task::kTensors:
      break;  // program_tensors.h
  }
  return {};
}

std::string NamesOf(const Outputs& outputs) {
  return absl::StrJoin(outputs, ", ", [](std::string* out, const Output& output) {
    absl::StrAppend(out, "'", output.name, "'");
  });
}

// Null if it is not wanted.
const WantedOutput* Find(const Output& output, const std::vector<WantedOutput>& wanted) {
  const auto named = [&output](const WantedOutput& one) { return one.name == output.name; };
  const auto found = std::find_if(wanted.begin(), wanted.end(), named);
  return found == wanted.end() ? nullptr : &*found;
}

absl::StatusOr<Tensor> Make(const Output& output, const HeldResponse& response, ItemsForm form) {
  absl::StatusOr<Values> values = output.make(response, form);
  if (!values.ok()) return values.status();
  return Tensor{.name = output.name,
                .type = output.type,
                .shape = std::move(values->shape),
                .data = std::move(values->data)};
}

}  // namespace

absl::Status CheckOutputs(const std::vector<WantedOutput>& wanted, const models::Description& model,
                          ItemsForm form) {
  if (wanted.empty()) return absl::OkStatus();
  const Outputs outputs = OutputsOf(model, form);
  for (const WantedOutput& one : wanted) {
    const auto named = [&one](const Output& output) { return one.name == output.name; };
    if (std::any_of(outputs.begin(), outputs.end(), named)) continue;
    return Invalid("outputs", absl::StrCat("no output is named ", Shown(one.name), "; the model's ",
                                           outputs.size() == 1 ? "is " : "are ", NamesOf(outputs)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> MakeOutputs(const HeldResponse& response,
                                                const std::vector<WantedOutput>& wanted, ItemsForm form) {
  const models::Description& model = *response->description;
  std::vector<Tensor> tensors;
  for (const Output& output : OutputsOf(model, form)) {
    const WantedOutput* const asked = Find(output, wanted);
    if (asked == nullptr && (!wanted.empty() || !output.unasked)) continue;
    auto tensor = Make(output, response, form);
    if (tensor.ok() && asked != nullptr && asked->classes > 0) {
      tensor = Classify(*tensor, asked->classes, LabelsOfIndices(output, model), /*batched=*/true);
    }
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

std::vector<std::string> UnaskedOutputs(const models::Description& model, ItemsForm form) {
  std::vector<std::string> names;
  for (const Output& output : OutputsOf(model, form)) {
    if (output.unasked) names.emplace_back(output.name);
  }
  return names;
}

const std::vector<std::string>& LabelsOfIndices(const std::string& name, const models::Description& model,
                                                ItemsForm form) {
  const Outputs outputs = OutputsOf(model, form);
  const auto named = [&name](const Output& output) { return output.name == name; };
  return LabelsOfIndices(*std::find_if(outputs.begin(), outputs.end(), named), model);
}

std::vector<TensorDescription> DescribeOutputs(const models::Description& model, ItemsForm form) {
  std::vector<TensorDescription> described;
  for (const Output& output : OutputsOf(model, form)) {
    described.push_back(
        {.name = output.name, .type = output.type, .shape = {output.shape.begin(), output.shape.end()}});
  }
  return described;
}

}  // namespace saccade::server
