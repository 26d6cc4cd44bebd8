// Reads what an ONNX file says of its inputs and outputs. Needs no OpenVINO.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/api/data_type.h"

namespace saccade::models {

struct OnnxPort {
  std::string name;
  // nullopt for texts, sequences, and types that the protocol does not have.
  std::optional<DataType> type = std::nullopt;
  // nullopt if the file gives no shape; -1 where a size is open.
  std::optional<std::vector<int64_t>> dims = std::nullopt;
};

struct OnnxSummary {
  // The exporter, such as "pytorch 2.9.0"; empty if the file does not say.
  std::string producer;
  // The version of ONNX's own operators; 0 if the file does not say.
  uint64_t opset = 0;
  // Those that a request gives: initializers are listed among the inputs by old exporters, and left out.
  std::vector<OnnxPort> inputs;
  std::vector<OnnxPort> outputs;
};

// Whether the bytes begin as ONNX files do and as neither a zip file nor safetensors does.
bool LooksLikeOnnx(std::string_view file);

// Throws a LoadError if the file is cut short, has no graph, no inputs or no outputs, or more than 1024 of
// them.
OnnxSummary SummariseOnnx(std::string_view file);

// Returns what max_batch_size is for the graph: kOpenBatch if all tensors leave their first size open, 1 if
// it is 1 in all of them, otherwise 0, without a batch.
inline constexpr int64_t kOpenBatch = 8;
int64_t MaxBatchOf(const OnnxSummary& graph);

// Returns "FP32 [-1,3,224,224]".
std::string DescribePort(const OnnxPort& port);

}  // namespace saccade::models
