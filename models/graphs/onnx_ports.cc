#include "models/graphs/onnx_ports.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/api/error.h"
#include "models/graphs/onnx_fields.h"

namespace saccade::models {
namespace {

constexpr size_t kMaxPorts = 1024;
// More than any tensor of a network has.
constexpr size_t kMaxRank = 64;

// By the numbers of ONNX's TensorProto.DataType.
std::optional<DataType> TypeOf(uint64_t number) {
  switch (number) {
    case 1:
      return DataType::kFp32;
    case 2:
      return DataType::kUint8;
    case 3:
      return DataType::kInt8;
    case 4:
      return DataType::kUint16;
    case 5:
      return DataType::kInt16;
    case 6:
      return DataType::kInt32;
    case 7:
      return DataType::kInt64;
    case 9:
      return DataType::kBool;
    case 10:
      return DataType::kFp16;
    case 11:
      return DataType::kFp64;
    case 12:
      return DataType::kUint32;
    case 13:
      return DataType::kUint64;
    case 16:
      return DataType::kBf16;
    default:
      return std::nullopt;
  }
}

// The field `number` of a message, empty if it has none. Of several the last one counts, as in protobuf.
std::string_view BytesOf(std::string_view message, uint64_t number, const char* name) {
  std::string_view found;
  OnnxFields fields(message, name);
  for (OnnxField field; fields.Next(field);) {
    if (field.number == number && field.wire == OnnxWire::kBytes) found = field.bytes;
  }
  return found;
}

std::vector<int64_t> DimsOf(std::string_view shape) {
  std::vector<int64_t> dims;
  OnnxFields fields(shape, "a shape");
  for (OnnxField field; fields.Next(field);) {
    if (field.number != 1 || field.wire != OnnxWire::kBytes) continue;
    if (dims.size() == kMaxRank)
      throw LoadError("the ONNX file has a tensor of more than " + std::to_string(kMaxRank) + " dimensions");
    int64_t size = 0;
    OnnxFields parts(field.bytes, "a size");
    for (OnnxField part; parts.Next(part);) {
      if (part.number == 1 && part.wire == OnnxWire::kVarint) size = static_cast<int64_t>(part.value);
    }
    // A name in place of a number, or what old exporters write for an unknown size.
    dims.push_back(size > 0 ? size : -1);
  }
  return dims;
}

OnnxPort PortOf(std::string_view value) {
  OnnxPort port{.name = std::string(BytesOf(value, 1, "a tensor's name"))};
  const std::string_view tensor = BytesOf(BytesOf(value, 2, "a value"), 1, "a type");
  OnnxFields fields(tensor, "a tensor's type");
  for (OnnxField field; fields.Next(field);) {
    if (field.number == 1 && field.wire == OnnxWire::kVarint) port.type = TypeOf(field.value);
    if (field.number == 2 && field.wire == OnnxWire::kBytes) port.dims = DimsOf(field.bytes);
  }
  return port;
}

void ReadGraph(std::string_view graph, OnnxSummary& summary) {
  std::set<std::string_view> initializers;
  OnnxFields fields(graph, "a graph");
  for (OnnxField field; fields.Next(field);) {
    if (field.wire != OnnxWire::kBytes) continue;
    if (field.number == 5) initializers.insert(BytesOf(field.bytes, 8, "a tensor"));
    if (field.number == 12) summary.outputs.push_back(PortOf(field.bytes));
    if (summary.outputs.size() > kMaxPorts)
      throw LoadError("the ONNX file has more than " + std::to_string(kMaxPorts) + " outputs");
  }
  OnnxFields again(graph, "a graph");
  for (OnnxField field; again.Next(field);) {
    if (field.number != 11 || field.wire != OnnxWire::kBytes) continue;
    if (initializers.contains(BytesOf(field.bytes, 1, "a value"))) continue;
    if (summary.inputs.size() == kMaxPorts)
      throw LoadError("the ONNX file has more than " + std::to_string(kMaxPorts) + " inputs");
    summary.inputs.push_back(PortOf(field.bytes));
  }
}

// The version of an opset, if it is that of ONNX's own operators.
uint64_t OpsetOf(std::string_view opset) {
  const std::string_view domain = BytesOf(opset, 1, "an opset");
  if (!domain.empty() && domain != "ai.onnx") return 0;
  uint64_t version = 0;
  OnnxFields fields(opset, "an opset");
  for (OnnxField field; fields.Next(field);) {
    if (field.number == 2 && field.wire == OnnxWire::kVarint) version = field.value;
  }
  return version;
}

}  // namespace

bool LooksLikeOnnx(std::string_view file) {
  // The version of the format comes first, as a number below 32. The ninth byte of safetensors is a brace.
  return file.size() > 8 && file[0] == '\x08' && file[1] > 0 && file[1] < 32 && file[8] != '{';
}

OnnxSummary SummariseOnnx(std::string_view file) {
  OnnxSummary summary;
  std::string_view graph;
  bool has_graph = false;
  std::string_view producer;
  std::string_view producer_version;
  OnnxFields fields(file, "the model");
  for (OnnxField field; fields.Next(field);) {
    if (field.wire != OnnxWire::kBytes) continue;
    if (field.number == 2) producer = field.bytes;
    if (field.number == 3) producer_version = field.bytes;
    if (field.number == 8) summary.opset = std::max(summary.opset, OpsetOf(field.bytes));
    if (field.number != 7) continue;
    graph = field.bytes;
    has_graph = true;
  }
  if (!has_graph)
    throw LoadError(
        "the file is no ONNX model, or is cut short: it has no graph; expected a file written by onnx.save, "
        "torch.onnx.export or the like");
  summary.producer = producer;
  if (!producer_version.empty()) summary.producer += " " + std::string(producer_version);
  ReadGraph(graph, summary);
  if (summary.inputs.empty() || summary.outputs.empty())
    throw LoadError(std::string("the graph of the ONNX file has no ") +
                    (summary.inputs.empty() ? "inputs" : "outputs") + "; export it again");
  return summary;
}

int64_t MaxBatchOf(const OnnxSummary& graph) {
  std::set<int64_t> first;
  for (const auto* ports : {&graph.inputs, &graph.outputs}) {
    for (const OnnxPort& port : *ports) {
      if (!port.dims || port.dims->empty()) return 0;
      first.insert(port.dims->front());
    }
  }
  if (first.size() != 1) return 0;
  return *first.begin() == -1 ? kOpenBatch : *first.begin() == 1 ? 1 : 0;
}

std::string DescribePort(const OnnxPort& port) {
  std::string text = port.type ? NameOf(*port.type) : "of another type";
  if (!port.dims) return text + " of any shape";
  text += " [";
  for (size_t i = 0; i < port.dims->size(); ++i) text += (i > 0 ? "," : "") + std::to_string((*port.dims)[i]);
  return text + "]";
}

}  // namespace saccade::models
