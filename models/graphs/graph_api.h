// The interface between the daemon and libsaccade_openvino.so, which runs graphs by OpenVINO and is opened
// only if a model needs it. Both are built from the same sources but may be installed apart, so the interface
// is C: it has a version, and no exception, no standard library type and no allocation crosses it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace saccade::models {

// Changes with every change of this file.
inline constexpr uint32_t kGraphApiVersion = 1;
// The function that returns a const GraphApi*; it takes no arguments.
inline constexpr char kGraphApiSymbol[] = "saccade_graph_api";
// A data type that has no number in DataType.
inline constexpr int32_t kOtherType = -1;

extern "C" {

// A compiled graph, and the outputs of one of its passes.
struct SaccadeGraph;
struct SaccadeGraphPass;

struct GraphLoadOptions {
  // A .onnx file, or an .xml file with the .bin file of the same name beside it.
  const char* path;
  // Threads that one pass uses, the calling one included.
  int32_t threads;
  // Number of passes that may run at the same time.
  int32_t instances;
  // Whether layers may compute in bfloat16. Otherwise they compute in float32, or in what the graph says.
  int32_t bfloat16;
};

// An input or output. The pointers belong to the graph.
struct GraphPort {
  // The names, with a line feed after each.
  const char* names;
  // A DataType, or kOtherType.
  int32_t type;
  // Number of dimensions; -1 if it is open.
  int32_t rank;
  // Sizes; -1 where they are open.
  const int64_t* dims;
};

struct GraphTensor {
  int32_t type;
  int32_t rank;
  const int64_t* dims;
  const void* data;
};

// Functions return null or a number other than 0 if they fail, after writing a message of less than
// `error_size` bytes, with a NUL at its end, to `error`.
struct GraphApi {
  uint32_t version;
  // "2026.4.0", with more about the build.
  const char* (*runtime)();
  // Reads and compiles the file. Blocks.
  SaccadeGraph* (*load)(const GraphLoadOptions* options, char* error, size_t error_size);
  void (*unload)(SaccadeGraph* graph);
  int32_t (*inputs)(const SaccadeGraph* graph);
  int32_t (*outputs)(const SaccadeGraph* graph);
  // `index` is below inputs() or outputs().
  GraphPort (*input)(const SaccadeGraph* graph, int32_t index);
  GraphPort (*output)(const SaccadeGraph* graph, int32_t index);
  // Computes a pass over one tensor for each input, which are not written to and not kept. Blocks. May be
  // called by several threads. Sizes are checked against the graph's.
  SaccadeGraphPass* (*run)(SaccadeGraph* graph, const GraphTensor* tensors, int32_t count, char* error,
                           size_t error_size);
  // An output of the pass; its data stays until release(). Writes the dimensions, at most kMaxGraphRank, to
  // `dims`, to which the result points.
  int32_t (*result)(SaccadeGraphPass* pass, int32_t index, GraphTensor* tensor, int64_t* dims, char* error,
                    size_t error_size);
  // Gives the outputs' memory back to the graph. Before unload().
  void (*release)(SaccadeGraphPass* pass);
};

}  // extern "C"

inline constexpr int32_t kMaxGraphRank = 16;

}  // namespace saccade::models
