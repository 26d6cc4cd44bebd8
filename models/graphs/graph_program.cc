#include "models/graphs/graph_program.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/device/use_threads.h"
#include "models/graphs/graph_check.h"
#include "models/graphs/graph_plugin.h"
#include "models/graphs/graph_ports.h"
#include "models/programs/values.h"

namespace saccade::models {
namespace {

using Value = TensorProgram::Value;

// The parameters of Triton's backends for graphs are ignored, as unknown ones are.
bool UsesBfloat16(const Options& options) {
  const auto found = options.find("precision");
  if (found == options.end()) return false;
  const std::string& name = found->second;
  if (name == "fp32" || name == "float32") return false;
  if (name == "bf16" || name == "bfloat16") return true;
  throw LoadError("parameter precision is " + Quote(name) +
                  ", expected fp32 or bf16 for a graph; a graph in int8 stays as it is");
}

std::vector<std::string> NotesOn(const Options& options, bool one_row) {
  std::vector<std::string> notes;
  if (one_row)
    notes.emplace_back(
        "the graph takes one picture at a time, so the pictures of a batch are computed one after another; "
        "export it with an open first size, or set max_batch_size to 1");
  for (const auto& [name, value] : options) {
    if (name == "precision") continue;
    notes.push_back("parameter " + Quote(name) + " is ignored: graphs are computed by OpenVINO on " +
                    "--threads-per-instance threads, and use the parameter precision alone");
  }
  return notes;
}

class Graph : public TensorProgram {
 public:
  Graph(const GraphApi& api, SaccadeGraph* graph, ProgramOptions options)
      : api_(api),
        graph_(graph, api.unload),
        options_(std::move(options)),
        ports_(MatchPorts(ReadPorts(api, graph), options_.signature)),
        notes_(NotesOn(options_.options, ports_.one_row)) {}

  const Signature& signature() const override { return options_.signature; }
  const std::vector<std::string>& notes() const override { return notes_; }
  bool takes_one_row() const override { return ports_.one_row; }

  std::vector<Value> Run(std::vector<Value> inputs) const override {
    const int64_t rows = RowsOf(signature(), inputs);
    std::vector<GraphTensor> tensors(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor& input = inputs[i].toTensor();
      tensors[ports_.inputs[i]] = {.type = static_cast<int32_t>(signature().inputs[i].type),
                                   .rank = static_cast<int32_t>(input.dim()),
                                   .dims = input.sizes().data(),
                                   .data = input.const_data_ptr()};
    }
    SaccadeGraphPass* const pass =
        CallGraph<std::runtime_error>(static_cast<SaccadeGraphPass*>(nullptr), [&](char* error, size_t size) {
          return api_.run(graph_.get(), tensors.data(), static_cast<int32_t>(tensors.size()), error, size);
        });
    // Given back when the last output is.
    const std::shared_ptr<SaccadeGraphPass> held(pass, api_.release);
    std::vector<Value> outputs;
    for (size_t i = 0; i < ports_.outputs.size(); ++i) outputs.push_back(Output(held, i));
    return CheckOutputs(signature(), rows, std::move(outputs));
  }

 private:
  Value Output(const std::shared_ptr<SaccadeGraphPass>& pass, size_t index) const {
    GraphTensor tensor{};
    std::array<int64_t, kMaxGraphRank> dims{};
    const auto port = static_cast<int32_t>(ports_.outputs[index]);
    const auto call = [&](char* error, size_t size) {
      return api_.result(pass.get(), port, &tensor, dims.data(), error, size) == 0;
    };
    CallGraph<std::runtime_error>(false, call);
    if (tensor.type == kOtherType)
      throw std::runtime_error("output '" + signature().outputs[index].name + "' has a type without a name");
    const at::IntArrayRef shape(dims.data(), static_cast<size_t>(tensor.rank));
    // Nothing writes to outputs; from_blob has no const form.
    return at::from_blob(
        const_cast<void*>(tensor.data), shape, [pass](void*) {},
        ScalarTypeOf(static_cast<DataType>(tensor.type)));
  }

  const GraphApi& api_;
  const std::unique_ptr<SaccadeGraph, void (*)(SaccadeGraph*)> graph_;
  const ProgramOptions options_;
  const MatchedPorts ports_;
  const std::vector<std::string> notes_;
};

}  // namespace

bool IsGraphFile(const std::string& path) { return path.ends_with(".onnx") || path.ends_with(".xml"); }

std::unique_ptr<TensorProgram> LoadGraph(const std::string& path, ProgramOptions options) {
  if (options.gpu)
    throw LoadError(
        "graphs are computed on the CPU, but the configuration places instances on a GPU; use KIND_CPU");
  const GraphLoadOptions load = {.path = path.c_str(),
                                 .threads = std::max(1, UsedThreads()),
                                 .instances = std::max(1, options.instances),
                                 .bfloat16 = UsesBfloat16(options.options) ? 1 : 0};
  const GraphApi& api = TheGraphApi();
  CheckGraphFile(path, options.repository);
  SaccadeGraph* const graph =
      CallGraph<LoadError>(static_cast<SaccadeGraph*>(nullptr),
                           [&](char* error, size_t size) { return api.load(&load, error, size); });
  return std::make_unique<Graph>(api, graph, std::move(options));
}

}  // namespace saccade::models
