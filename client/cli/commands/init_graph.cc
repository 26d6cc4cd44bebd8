// Includes models/ to read ONNX files as the daemon does.
#include "client/cli/commands/init_graph.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/api/error.h"
#include "models/api/text.h"
#include "models/graphs/onnx_file.h"
#include "models/graphs/onnx_ports.h"

namespace saccade::client {
namespace {

namespace fs = std::filesystem;
using models::OnnxPort;

constexpr char kFileName[] = "model.onnx";

std::string TensorLine(const OnnxPort& port, bool batched, const std::string& more) {
  std::vector<int64_t> dims = port.dims.value_or(std::vector<int64_t>{-1});
  if (batched) dims.erase(dims.begin());
  const std::string shape =
      dims.empty() ? "[ 1 ] reshape { shape: [ ] }" : absl::StrCat("[ ", absl::StrJoin(dims, ", "), " ]");
  return absl::StrCat("{ name: \"", absl::CEscape(port.name), "\" data_type: TYPE_",
                      models::NameOf(*port.type), " dims: ", shape, more, " }");
}

// Throws LoadError if the protocol has no such tensors.
void CheckPort(const OnnxPort& port, const char* what) {
  if (port.type) return;
  throw models::LoadError(
      absl::StrCat("the ", what, " ", models::Quote(port.name),
                   " is neither a tensor of numbers nor of booleans, which graphs need to be "
                   "here; export the network without it"));
}

// The number of classes if the graph looks like a classifier of pictures: one picture of three channels in,
// one row of numbers out. Otherwise 0.
int64_t ClassesOf(const models::OnnxSummary& graph) {
  if (graph.inputs.size() != 1 || graph.outputs.size() != 1) return 0;
  const auto& in = graph.inputs[0].dims;
  const auto& out = graph.outputs[0].dims;
  if (!in || !out || in->size() != 4 || (*in)[1] != 3 || out->size() != 2) return 0;
  return std::max<int64_t>(0, (*out)[1]);
}

// What to write so that the classifier takes pictures instead of tensors.
std::string PicturesNote(const models::OnnxSummary& graph) {
  const std::vector<int64_t>& dims = *graph.inputs[0].dims;
  const bool fixed = dims[2] > 0 && dims[3] > 0;
  const std::string size = fixed ? absl::StrCat("[", dims[2], ", ", dims[3], "]") : "224";
  return absl::StrCat(
      "it takes tensors; if it is a classifier of pictures, let it take those with a saccade.json beside "
      "config.pbtxt, with the size, mean and std that it was trained with: {\"input\": {\"size\": ",
      size,
      ", \"mean\": [0.485, 0.456, 0.406], \"std\": [0.229, 0.224, 0.225]}, \"head\": {\"kind\": "
      "\"classes\"}}");
}

// The files with external data, each once. Throws LoadError unless they are where the daemon will find them.
void AddExternalData(std::string_view file, const fs::path& folder, ModelFolder& made) {
  std::set<fs::path> seen;
  for (const models::ExternalData& data : models::LookThroughOnnx(file)) {
    models::CheckExternalData(data, folder);
    const fs::path to = fs::path(data.location).lexically_normal();
    if (to == kFileName)
      throw models::LoadError(absl::StrCat(
          "the external data of tensor ", models::Quote(data.tensor), " is in ", models::Quote(data.location),
          ", which cannot be copied beside the model; save the model with its data "
          "in a file of the same folder"));
    if (seen.insert(to).second) made.more_files.emplace_back(folder / data.location, to);
  }
  if (seen.empty()) return;
  made.notes.push_back(absl::StrCat("its weights are in ", seen.size(), seen.size() == 1 ? " file" : " files",
                                    " beside it, which ", seen.size() == 1 ? "is" : "are", " copied too"));
}

}  // namespace

bool IsOnnx(const std::string& path, std::string_view file) {
  return absl::EqualsIgnoreCase(fs::path(path).extension().string(), ".onnx") || models::LooksLikeOnnx(file);
}

ModelFolder FolderOfOnnx(const std::string& path, std::string_view file, bool has_labels) {
  const models::OnnxSummary graph = models::SummariseOnnx(file);
  for (const OnnxPort& port : graph.inputs) CheckPort(port, "input");
  for (const OnnxPort& port : graph.outputs) CheckPort(port, "output");
  const int64_t max_batch = models::MaxBatchOf(graph);
  ModelFolder made{.what = absl::StrCat("an ONNX file", graph.producer.empty() ? "" : " of ", graph.producer,
                                        graph.opset > 0 ? absl::StrCat(", opset ", graph.opset) : ""),
                   .config = absl::StrCat("backend: \"onnxruntime\"\nmax_batch_size: ", max_batch, "\n"),
                   .file_name = kFileName,
                   .classes = ClassesOf(graph),
                   .labels_too = ", and label_filename: \"labels.txt\" into the output in config.pbtxt",
                   .notes = {}};
  const auto add = [&](const std::vector<OnnxPort>& ports, const char* what, const char* more_of_first) {
    for (const OnnxPort& port : ports) {
      const bool is_first = &port == ports.data();
      absl::StrAppend(&made.config, what, " ", TensorLine(port, max_batch > 0, is_first ? more_of_first : ""),
                      "\n");
      made.notes.push_back(
          absl::StrCat(what, " ", models::Quote(port.name), " is ", models::DescribePort(port)));
      if (!port.dims)
        made.notes.push_back(absl::StrCat("the file does not tell the shape of ", models::Quote(port.name),
                                          "; write its dims into config.pbtxt"));
    }
  };
  add(graph.inputs, "input", "");
  add(graph.outputs, "output", has_labels ? " label_filename: \"labels.txt\"" : "");
  if (max_batch == 1)
    made.notes.emplace_back(
        "it was exported for a batch of 1; export it with an open first size to compute batches");
  if (max_batch == 0)
    made.notes.emplace_back("its first sizes are no batch, so that requests are computed one by one");
  if (made.classes > 0) made.notes.push_back(PicturesNote(graph));
  AddExternalData(file, fs::absolute(path).parent_path(), made);
  made.notes.emplace_back("OpenVINO computes it: the daemon needs the package saccade-openvino");
  return made;
}

}  // namespace saccade::client
