#include "server/repository/answer_settings.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

// Values are escaped, so that none of them can look like another line.
void AddLine(std::string& text, absl::string_view name, absl::string_view value) {
  absl::StrAppend(&text, name, " ", absl::CEscape(value), "\n");
}

void AddLabels(std::string& text, const std::vector<std::string>& labels) {
  for (const std::string& label : labels) AddLine(text, "label", label);
}

void AddTensors(std::string& text, absl::string_view kind, const std::vector<TensorSpec>& tensors) {
  for (const TensorSpec& tensor : tensors) {
    AddLine(text, kind, tensor.name);
    AddLine(text, "type", NameOf(tensor.type));
    AddLine(text, "dims", absl::StrJoin(tensor.dims, ","));
    if (tensor.reshape) AddLine(text, "reshape", absl::StrJoin(*tensor.reshape, ","));
    AddLine(text, "format", absl::StrCat(static_cast<int>(tensor.format)));
    AddLine(text, "optional", tensor.optional ? "true" : "false");
    AddLabels(text, tensor.labels);
  }
}

}  // namespace

std::string AnswerSettings(const ModelSettings& settings) {
  std::string text;
  AddLine(text, "backend", NameOf(settings.backend));
  AddLine(text, "architecture", settings.architecture);
  for (const auto& [name, value] : settings.options) {
    AddLine(text, "option", name);
    AddLine(text, "value", value);
  }
  AddLabels(text, settings.labels);
  AddLine(text, "pictures", settings.pictures_text);
  AddTensors(text, "input", settings.inputs);
  AddTensors(text, "output", settings.outputs);
  AddLine(text, "batch_dimension", settings.has_batch_dimension ? "true" : "false");
  AddLine(text, "tiles", absl::StrCat(settings.tiles.size, ":", settings.tiles.overlap));
  AddLine(text, "items", settings.items == ItemsForm::kFlat ? "flat" : "padded");
  AddLine(text, "strict_output_shapes", settings.strict_output_shapes ? "true" : "false");
  return text;
}

}  // namespace saccade::server
