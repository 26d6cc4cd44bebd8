#include "client/cli/commands/models.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/connect.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/json.h"
#include "client/cli/output/names.h"
#include "client/cli/output/table.h"

namespace saccade::client {
namespace {

nlohmann::ordered_json ToJson(const Model& model) {
  nlohmann::ordered_json json = {{"name", model.name},
                                 {"version", model.version},
                                 {"state", StateName(model.state)},
                                 {"architecture", model.architecture},
                                 {"task", model.task},
                                 {"options", model.options},
                                 {"input", {{"width", model.input_width}, {"height", model.input_height}}},
                                 {"buckets", model.buckets},
                                 {"views", model.views},
                                 {"max_frames", model.max_frames},
                                 {"frames_per_second", model.frames_per_second},
                                 {"max_voxels", model.max_voxels},
                                 {"classes", model.classes},
                                 {"labels", model.labels},
                                 {"attention_layers", model.attention_layers},
                                 {"precision", model.precision},
                                 {"precision_reason", model.precision_reason},
                                 {"max_batch_size", model.max_batch_size},
                                 {"queued", model.queued},
                                 {"load_ms", Milliseconds(model.load_duration)}};
  if (!model.reason.empty()) json["reason"] = model.reason;
  if (model.promotion) json["promotion"] = ToJson(*model.promotion);
  return json;
}

// Returns for example "224x224"; "up to 2x 1248x384" for a pair of many sizes; "768x 96x96" for a clip of at
// most 768 frames; "-" for a model that takes tensors or is not ready.
std::string InputOf(const Model& model) {
  if (model.max_voxels > 0) return absl::StrCat("up to ", model.max_voxels, " voxels");
  if (model.input_width == 0) return "-";
  const int pictures = std::max(model.views, model.max_frames);
  return absl::StrCat(model.buckets.empty() ? "" : "up to ", pictures > 1 ? absl::StrCat(pictures, "x ") : "",
                      model.input_width, "x", model.input_height);
}

void PrintModels(Console& console, const std::vector<Model>& models) {
  const auto any = [&](const auto& is_so) { return std::any_of(models.begin(), models.end(), is_so); };
  const bool lower =
      any([](const Model& model) { return !model.precision.empty() && model.precision != "fp32"; });
  const bool many_sizes = any([](const Model& model) { return !model.buckets.empty(); });
  std::vector<Column> columns = {{"NAME"},          {"VERSION", true}, {"STATE"},
                                 {"TASK"},          {"ARCHITECTURE"},  {"INPUT", true},
                                 {"CLASSES", true}, {"BATCH", true},   {"QUEUED", true}};
  if (lower) columns.push_back({"PRECISION"});
  if (many_sizes) columns.push_back({"BUCKETS"});
  std::vector<std::vector<std::string>> rows;
  for (const Model& model : models) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {model.name,
           absl::StrCat(model.version),
           StateName(model.state),
           model.task,
           model.architecture,
           InputOf(model),
           model.classes > 0 ? absl::StrCat(model.classes) : "-",
           absl::StrCat(model.max_batch_size),
           absl::StrCat(model.queued)};
    if (lower) row.push_back(model.precision);
    if (many_sizes) row.push_back(model.buckets);
  }
  PrintTable(console, columns, rows);
  for (const Model& model : models) {
    const std::string which = absl::StrCat(model.name, " ", model.version, ": ");
    if (!model.reason.empty()) console.out << Printable(which + model.reason) << '\n';
    if (model.promotion) console.out << Printable(which + TextOf(*model.promotion)) << '\n';
  }
}

}  // namespace

int RunModels(const ModelsCommand& command, Console& console) {
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  const auto models = client->ListModels();
  if (!models.ok()) return ComplainOf(console, command.connection, models.status());
  if (command.format == Format::kJson) {
    nlohmann::ordered_json document = {{"version", 1}, {"models", nlohmann::ordered_json::array()}};
    for (const Model& model : *models) document["models"].push_back(ToJson(model));
    console.out << Dump(document);
  } else if (models->empty()) {
    Complain(console, absl::StrCat("the daemon at ", command.connection.url, " has no models"));
  } else {
    PrintModels(console, *models);
  }
  return Flush(console) ? kExitOk : kExitFailure;
}

}  // namespace saccade::client
