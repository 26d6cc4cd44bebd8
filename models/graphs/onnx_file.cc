#include "models/graphs/onnx_file.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "models/api/error.h"
#include "models/api/paths.h"
#include "models/api/text.h"
#include "models/graphs/onnx_fields.h"

namespace saccade::models {
namespace {

// Subgraphs in attributes of nodes in subgraphs. Exporters need three.
constexpr int kMaxDepth = 32;
// Tensors with external data in one file.
constexpr size_t kMaxExternal = 1 << 20;

// The numbers of the fields in ONNX's messages.
namespace model {
constexpr uint64_t kGraph = 7, kFunctions = 25;
}
namespace graph {
constexpr uint64_t kNode = 1, kInitializer = 5, kSparseInitializer = 15;
}
namespace function {
// The second are attributes' default values.
constexpr uint64_t kNode = 7, kAttributes = 11;
}  // namespace function
namespace node {
constexpr uint64_t kAttribute = 5;
}
namespace attribute {
constexpr uint64_t kTensor = 5, kGraph = 6, kTensors = 10, kGraphs = 11, kSparse = 22, kSparses = 23;
}
namespace sparse {
constexpr uint64_t kValues = 1, kIndices = 2;
}
namespace tensor {
constexpr uint64_t kName = 8, kExternalData = 13;
}

class Look {
 public:
  std::vector<ExternalData> found;

  void Model(std::string_view bytes) {
    OnnxFields fields(bytes, "the model");
    bool has_graph = false;
    for (OnnxField field; fields.Next(field);) {
      if (field.wire != OnnxWire::kBytes) continue;
      if (field.number == model::kGraph) {
        Graph(field.bytes);
        has_graph = true;
      } else if (field.number == model::kFunctions) {
        Function(field.bytes);
      }
    }
    if (!has_graph)
      throw LoadError(
          "the file is no ONNX model, or is cut short: it has no graph; expected a file written by "
          "onnx.save, "
          "torch.onnx.export or the like");
  }

 private:
  void Graph(std::string_view bytes) {
    if (++depth_ > kMaxDepth)
      throw LoadError("the ONNX file has graphs inside of graphs more than " + std::to_string(kMaxDepth) +
                      " deep");
    OnnxFields fields(bytes, "a graph");
    for (OnnxField field; fields.Next(field);) {
      if (field.wire != OnnxWire::kBytes) continue;
      if (field.number == graph::kNode) Node(field.bytes);
      if (field.number == graph::kInitializer) Tensor(field.bytes);
      if (field.number == graph::kSparseInitializer) Sparse(field.bytes);
    }
    --depth_;
  }

  void Function(std::string_view bytes) {
    OnnxFields fields(bytes, "a function");
    for (OnnxField field; fields.Next(field);) {
      if (field.wire != OnnxWire::kBytes) continue;
      if (field.number == function::kNode) Node(field.bytes);
      if (field.number == function::kAttributes) Attribute(field.bytes);
    }
  }

  void Node(std::string_view bytes) {
    OnnxFields fields(bytes, "a node");
    for (OnnxField field; fields.Next(field);) {
      if (field.wire == OnnxWire::kBytes && field.number == node::kAttribute) Attribute(field.bytes);
    }
  }

  void Attribute(std::string_view bytes) {
    OnnxFields fields(bytes, "an attribute");
    for (OnnxField field; fields.Next(field);) {
      if (field.wire != OnnxWire::kBytes) continue;
      const uint64_t number = field.number;
      if (number == attribute::kTensor || number == attribute::kTensors) Tensor(field.bytes);
      if (number == attribute::kGraph || number == attribute::kGraphs) Graph(field.bytes);
      if (number == attribute::kSparse || number == attribute::kSparses) Sparse(field.bytes);
    }
  }

  void Sparse(std::string_view bytes) {
    OnnxFields fields(bytes, "a sparse tensor");
    for (OnnxField field; fields.Next(field);) {
      if (field.wire != OnnxWire::kBytes) continue;
      if (field.number == sparse::kValues || field.number == sparse::kIndices) Tensor(field.bytes);
    }
  }

  void Tensor(std::string_view bytes) {
    ExternalData data;
    bool is_external = false;
    OnnxFields fields(bytes, "a tensor");
    for (OnnxField field; fields.Next(field);) {
      if (field.wire != OnnxWire::kBytes) continue;
      if (field.number == tensor::kName) data.tensor = std::string(field.bytes);
      if (field.number != tensor::kExternalData) continue;
      is_external = true;
      External(field.bytes, data);
    }
    if (!is_external) return;
    if (found.size() == kMaxExternal)
      throw LoadError("the ONNX file has more than " + std::to_string(kMaxExternal) +
                      " tensors with external data");
    found.push_back(std::move(data));
  }

  // One key with its value.
  static void External(std::string_view bytes, ExternalData& data) {
    constexpr uint64_t kKey = 1;
    constexpr uint64_t kValue = 2;
    std::string_view key;
    std::string_view value;
    OnnxFields fields(bytes, "an entry of external data");
    for (OnnxField field; fields.Next(field);) {
      // Protobuf leaves a field of another kind out; taken here, it would empty the key or the value.
      if (field.wire != OnnxWire::kBytes) continue;
      if (field.number == kKey) key = field.bytes;
      if (field.number == kValue) value = field.bytes;
    }
    if (key == "location") {
      // Readers differ in which of several they take.
      if (!data.location.empty())
        throw LoadError("the external data of tensor " + Quote(data.tensor) + " has several locations: " +
                        Quote(data.location) + " and " + Quote(value) + "; expected one");
      data.location = std::string(value);
    }
    if (key != "offset" && key != "length") return;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size())
      throw LoadError("the external data of tensor " + Quote(data.tensor) + " has " + std::string(key) + " " +
                      Quote(value) + ", expected a number of bytes");
    (key == "offset" ? data.offset : data.length) = number;
  }

  int depth_ = 0;
};

// OpenVINO takes an offset in the file */_ORT_MEM_ADDR_/* for an address in its own memory.
constexpr std::string_view kMemory = "_ORT_MEM_ADDR_";

// Whether this part of a path is a hidden name or "..".
bool IsHidden(const std::filesystem::path& part) { return part != "." && part.native().starts_with('.'); }

}  // namespace

std::vector<ExternalData> LookThroughOnnx(std::string_view file) {
  Look look;
  look.Model(file);
  return std::move(look.found);
}

void CheckExternalData(const ExternalData& data, const std::filesystem::path& folder) {
  const std::string of = "the external data of tensor " + Quote(data.tensor);
  const auto outside = [&] {
    return LoadError(
        of + " is in " + Quote(data.location) +
        ", which is outside of the model's version directory; put the file beside the ONNX file, "
        "and its name into the model");
  };
  const std::filesystem::path location(data.location);
  if (data.location.empty() || data.location.find('\0') != std::string::npos)
    throw LoadError(of + " has no location; expected the name of a file beside the ONNX file");
  if (data.location.find(kMemory) != std::string::npos)
    throw LoadError(
        of + " is in " + Quote(data.location) +
        ", by which OpenVINO reads memory and no file; save the data in a file beside the ONNX file");
  if (location.is_absolute()) throw outside();
  std::error_code error;
  const std::filesystem::path inside = std::filesystem::canonical(folder, error);
  if (error) throw LoadError("the model's version directory cannot be read: " + error.message());
  const std::filesystem::path file = std::filesystem::weakly_canonical(inside / location, error);
  if (error || !IsInside(file, inside)) throw outside();
  if (std::any_of(location.begin(), location.end(), IsHidden))
    throw LoadError(of + " is in " + Quote(data.location) +
                    ", a path with a hidden name or '..', which checksums do not cover; put the file beside "
                    "the ONNX file under a name that begins with no dot, and that name into the model");
  const uint64_t size =
      std::filesystem::is_regular_file(file, error) ? std::filesystem::file_size(file, error) : 0;
  if (error || size == 0)
    throw LoadError(of + " is in " + Quote(data.location) +
                    ", which is missing or empty; copy that file beside the ONNX file");
  if (data.offset > size || data.length > size - data.offset)
    throw LoadError(of + " is at bytes " + std::to_string(data.offset) + " to " +
                    std::to_string(data.offset + data.length) + " of " + Quote(data.location) +
                    ", which has " + std::to_string(size) + "; the file is cut short, or of another model");
}

}  // namespace saccade::models
