#include "server/protocols/inference_outputs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/protocols/answer_size.h"
#include "server/protocols/inference_errors.h"
#include "server/protocols/inference_tensors.h"

namespace saccade::server {
namespace {

struct Output {
  const char* name;
  const char* datatype;
  // -1 where the request decides.
  absl::InlinedVector<int64_t, 5> shape;
  absl::StatusOr<OutputTensor> (*make)(const Response&);
  // Whether it comes without being named.
  bool unasked = true;
};

template <OutputTensor (*kMake)(const Response&)>
absl::StatusOr<OutputTensor> Always(const Response& response) {
  return kMake(response);
}

using Outputs = absl::InlinedVector<Output, 5>;

Outputs OutputsOf(const models::Description& model) {
  switch (model.task) {
    case models::Task::kClassification:
      return {{"logits", "FP32", {-1, model.classes}, Always<Logits>}};
    case models::Task::kDetection:
      return {{"num_detections", "INT64", {-1}, Always<DetectionCounts>},
              {"boxes", "FP32", {-1, -1, 4}, Always<Boxes>},
              {"scores", "FP32", {-1, -1}, Always<Scores>},
              {"labels", "INT64", {-1, -1}, Always<Labels>},
              // As large as all the rest together many times over.
              {"masks", "FP32", {-1, -1, -1, -1}, Always<Masks>, /*unasked=*/false}};
    case models::Task::kSegmentation:
      return {{"label_map", "UINT8", {-1, -1, -1}, LabelMaps},
              {"areas", "INT64", {-1, model.classes}, Always<Areas>}};
    case models::Task::kStereo:
      return {{"disparity", "FP32", {-1, -1, -1}, DisparityMaps}};
    case models::Task::kActions:
      return {{"num_actions", "INT64", {-1}, Always<ActionCounts>},
              {"segments", "FP32", {-1, -1, 2}, Always<ActionSegments>},
              {"scores", "FP32", {-1, -1}, Always<ActionScores>},
              {"labels", "INT64", {-1, -1}, Always<ActionLabels>}};
    case models::Task::kRestoration:
      return {{"restored", "FP32", {-1, -1, -1, -1}, RestoredVolumes}};
  }
  return {};
}

std::string NamesOf(const Outputs& outputs) {
  return absl::StrJoin(outputs, ", ", [](std::string* out, const Output& output) {
    absl::StrAppend(out, "'", output.name, "'");
  });
}

bool IsWanted(const Output& output, const inference::ModelInferRequest& request) {
  if (request.outputs().empty()) return output.unasked;
  return std::any_of(request.outputs().begin(), request.outputs().end(),
                     [&output](const auto& asked) { return asked.name() == output.name; });
}

}  // namespace

absl::Status CheckOutputs(const inference::ModelInferRequest& request, const models::Description& model) {
  if (request.outputs().empty()) return absl::OkStatus();
  const Outputs outputs = OutputsOf(model);
  for (const auto& asked : request.outputs()) {
    const bool known = std::any_of(outputs.begin(), outputs.end(),
                                   [&asked](const Output& output) { return asked.name() == output.name; });
    if (!known) {
      return Invalid("outputs", absl::StrCat("no output is named ", Shown(asked.name()), "; the model's ",
                                             outputs.size() == 1 ? "is " : "are ", NamesOf(outputs)));
    }
    for (const char* parameter : {"classification", "shared_memory_region"}) {
      if (asked.parameters().contains(parameter)) {
        return absl::UnimplementedError(
            absl::StrCat("output '", asked.name(), "': the parameter ", parameter, " is not served"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(const Response& response, const inference::ModelInferRequest& request,
                        InferenceAnswer* answer) {
  for (const Output& output : OutputsOf(*response.description)) {
    if (!IsWanted(output, request)) continue;
    absl::StatusOr<OutputTensor> tensor = output.make(response);
    if (!tensor.ok()) return tensor.status();
    auto* added = answer->fields.add_outputs();
    added->set_name(output.name);
    added->set_datatype(output.datatype);
    for (const int64_t extent : tensor->shape) added->add_shape(extent);
    answer->tensors.push_back(*std::move(tensor));
  }
  return absl::OkStatus();
}

void DescribeOutputs(const models::Description& model, inference::ModelMetadataResponse* message) {
  for (const Output& output : OutputsOf(model)) {
    auto* described = message->add_outputs();
    described->set_name(output.name);
    described->set_datatype(output.datatype);
    for (const int64_t extent : output.shape) described->add_shape(extent);
  }
}

absl::Status CheckSize(const InferenceAnswer& answer, int64_t most) {
  return CheckAnswerSize(SizeOf(answer), most,
                         "name fewer outputs, or send fewer or smaller pictures in a request");
}

}  // namespace saccade::server
