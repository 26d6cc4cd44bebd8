// libsaccade_openvino.so: the functions of graph_api.h by OpenVINO. Every function catches all exceptions.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <openvino/openvino.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/api/data_type.h"
#include "models/graphs/graph_api.h"
#include "models/graphs/openvino/error_lines.h"

namespace saccade::models {
namespace {

const std::array<std::pair<DataType, ov::element::Type>, 13>& Types() {
  static const std::array<std::pair<DataType, ov::element::Type>, 13> types = {{
      {DataType::kBool, ov::element::boolean},
      {DataType::kUint8, ov::element::u8},
      {DataType::kUint16, ov::element::u16},
      {DataType::kUint32, ov::element::u32},
      {DataType::kUint64, ov::element::u64},
      {DataType::kInt8, ov::element::i8},
      {DataType::kInt16, ov::element::i16},
      {DataType::kInt32, ov::element::i32},
      {DataType::kInt64, ov::element::i64},
      {DataType::kFp16, ov::element::f16},
      {DataType::kFp32, ov::element::f32},
      {DataType::kFp64, ov::element::f64},
      {DataType::kBf16, ov::element::bf16},
  }};
  return types;
}

int32_t NumberOf(const ov::element::Type& type) {
  for (const auto& [ours, theirs] : Types()) {
    if (theirs == type) return static_cast<int32_t>(ours);
  }
  return kOtherType;
}

ov::element::Type TypeOf(int32_t number) {
  for (const auto& [ours, theirs] : Types()) {
    if (static_cast<int32_t>(ours) == number) return theirs;
  }
  throw std::runtime_error("a tensor has a type that OpenVINO does not have");
}

// oneTBB opens libtbbbind and its libhwloc so that they use the C library's malloc, whatever the program uses
// (RTLD_DEEPBIND). libhwloc then frees with it what the program's malloc, tcmalloc, has allocated, and the
// process ends. A library that is open already stays as it is.
void OpenHwloc() { dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL); }

// One for the process, never destroyed: its threads may outlive the statics.
ov::Core& TheCore() {
  static ov::Core* const core = [] {
    OpenHwloc();
    auto made = std::make_unique<ov::Core>();
    // A file that is mapped and cut short by its owner would end the process.
    made->set_property(ov::enable_mmap(false));
    return made.release();
  }();
  return *core;
}

ov::AnyMap SettingsOf(const GraphLoadOptions& options) {
  return {ov::num_streams(options.instances), ov::inference_num_threads(options.threads * options.instances),
          ov::hint::inference_precision(options.bfloat16 != 0 ? ov::element::bf16 : ov::element::f32),
          // The daemon's scheduler decides where instances compute.
          ov::hint::enable_cpu_pinning(false), ov::hint::enable_hyper_threading(true)};
}

struct Port {
  std::string names;
  int32_t type = kOtherType;
  int32_t rank = -1;
  std::vector<int64_t> dims;
};

Port Describe(const ov::Output<const ov::Node>& output) {
  Port port;
  std::vector<std::string> names(output.get_names().begin(), output.get_names().end());
  std::sort(names.begin(), names.end());
  if (names.empty()) names.push_back(output.get_node()->get_friendly_name());
  for (const std::string& name : names) {
    // A line feed ends a name at the daemon, and a NUL all of them.
    if (name.empty() || name.find_first_of(std::string_view("\n\0", 2)) != std::string::npos)
      throw std::runtime_error(
          "an input or output of the graph has a name that is empty or contains a NUL or a line feed; "
          "expected a text of one line; rename it in the graph");
    port.names += name + "\n";
  }
  port.type = NumberOf(output.get_element_type());
  const ov::PartialShape& shape = output.get_partial_shape();
  if (shape.rank().is_dynamic()) return port;
  port.rank = static_cast<int32_t>(shape.size());
  for (const ov::Dimension& dim : shape) port.dims.push_back(dim.is_dynamic() ? -1 : dim.get_length());
  return port;
}

GraphPort AsSeen(const Port& port) {
  return {.names = port.names.c_str(), .type = port.type, .rank = port.rank, .dims = port.dims.data()};
}

void Write(const std::string& text, char* error, size_t error_size) {
  if (error_size == 0) return;
  const size_t bytes = std::min(text.size(), error_size - 1);
  std::memcpy(error, text.data(), bytes);
  error[bytes] = '\0';
}

// Calls `function`; on an exception writes its text and returns `failed`.
template <typename Result, typename Function>
Result Guarded(char* error, size_t error_size, Result failed, const Function& function) noexcept {
  try {
    try {
      return function();
    } catch (const std::bad_alloc&) {
      Write("out of memory", error, error_size);
    } catch (const std::exception& thrown) {
      Write(ErrorLines(thrown.what()), error, error_size);
    }
  } catch (...) {
    // No memory for the text, or an exception of another type.
    constexpr char kText[] = "OpenVINO failed and gave no reason";
    if (error_size >= sizeof(kText)) std::memcpy(error, kText, sizeof(kText));
  }
  return failed;
}

}  // namespace
}  // namespace saccade::models

struct saccade::models::SaccadeGraph {
  ov::CompiledModel compiled;
  std::vector<Port> inputs, outputs;
  std::mutex mutex;
  // Guarded by `mutex`: requests whose outputs are no longer held, at most `max_idle`.
  std::vector<ov::InferRequest> idle;
  // The number of instances, and so of passes that compute at a time. Answers that wait may have held more.
  size_t max_idle = 1;

  ov::InferRequest Take() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty()) {
        ov::InferRequest taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    return compiled.create_infer_request();
  }
};

struct saccade::models::SaccadeGraphPass {
  SaccadeGraph* graph;
  ov::InferRequest request;
  std::vector<ov::Tensor> outputs;
};

namespace saccade::models {
namespace {

const char* Runtime() {
  static const std::string text = [] {
    try {
      return std::string(ov::get_openvino_version().buildNumber);
    } catch (...) {
      return std::string("unknown");
    }
  }();
  return text.c_str();
}

SaccadeGraph* Load(const GraphLoadOptions* options, char* error, size_t error_size) {
  return Guarded<SaccadeGraph*>(error, error_size, nullptr, [&] {
    auto graph = std::make_unique<SaccadeGraph>();
    graph->max_idle = static_cast<size_t>(options->instances);
    const std::shared_ptr<ov::Model> model = TheCore().read_model(options->path);
    graph->compiled = TheCore().compile_model(model, "CPU", SettingsOf(*options));
    for (const auto& input : graph->compiled.inputs()) graph->inputs.push_back(Describe(input));
    for (const auto& output : graph->compiled.outputs()) graph->outputs.push_back(Describe(output));
    return graph.release();
  });
}

void Unload(SaccadeGraph* graph) {
  Guarded<int>(nullptr, 0, 0, [&] {
    delete graph;
    return 0;
  });
}

int32_t Inputs(const SaccadeGraph* graph) { return static_cast<int32_t>(graph->inputs.size()); }
int32_t Outputs(const SaccadeGraph* graph) { return static_cast<int32_t>(graph->outputs.size()); }
GraphPort Input(const SaccadeGraph* graph, int32_t index) {
  return AsSeen(graph->inputs[static_cast<size_t>(index)]);
}
GraphPort Output(const SaccadeGraph* graph, int32_t index) {
  return AsSeen(graph->outputs[static_cast<size_t>(index)]);
}

ov::Tensor AsTensor(const GraphTensor& tensor) {
  const ov::Shape shape(tensor.dims, tensor.dims + tensor.rank);
  // The constructor has no const form; passes do not write to their inputs.
  return {TypeOf(tensor.type), shape, const_cast<void*>(tensor.data)};
}

SaccadeGraphPass* Run(SaccadeGraph* graph, const GraphTensor* tensors, int32_t count, char* error,
                      size_t error_size) {
  return Guarded<SaccadeGraphPass*>(error, error_size, nullptr, [&] {
    auto pass = std::make_unique<SaccadeGraphPass>();
    pass->graph = graph;
    pass->request = graph->Take();
    for (int32_t i = 0; i < count; ++i)
      pass->request.set_input_tensor(static_cast<size_t>(i), AsTensor(tensors[i]));
    pass->request.infer();
    for (size_t i = 0; i < graph->outputs.size(); ++i)
      pass->outputs.push_back(pass->request.get_output_tensor(i));
    return pass.release();
  });
}

int32_t Result(SaccadeGraphPass* pass, int32_t index, GraphTensor* tensor, int64_t* dims, char* error,
               size_t error_size) {
  return Guarded<int32_t>(error, error_size, 1, [&] {
    const ov::Tensor& output = pass->outputs.at(static_cast<size_t>(index));
    const ov::Shape& shape = output.get_shape();
    if (shape.size() > kMaxGraphRank) throw std::runtime_error("an output has too many dimensions");
    std::copy(shape.begin(), shape.end(), dims);
    *tensor = {.type = NumberOf(output.get_element_type()),
               .rank = static_cast<int32_t>(shape.size()),
               .dims = dims,
               .data = output.data()};
    return 0;
  });
}

void Release(SaccadeGraphPass* pass) {
  Guarded<int>(nullptr, 0, 0, [&] {
    const std::unique_ptr<SaccadeGraphPass> ended(pass);
    ended->outputs.clear();
    const std::lock_guard<std::mutex> lock(ended->graph->mutex);
    if (ended->graph->idle.size() < ended->graph->max_idle)
      ended->graph->idle.push_back(std::move(ended->request));
    return 0;
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const GraphApi* saccade_graph_api() {
  static const GraphApi api = {.version = kGraphApiVersion,
                               .runtime = Runtime,
                               .load = Load,
                               .unload = Unload,
                               .inputs = Inputs,
                               .outputs = Outputs,
                               .input = Input,
                               .output = Output,
                               .run = Run,
                               .result = Result,
                               .release = Release};
  return &api;
}

}  // namespace saccade::models
