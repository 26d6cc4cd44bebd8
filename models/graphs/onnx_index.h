// Reads an ONNX file without the values of its tensors, which are most of it.
#pragma once

#include <cstdint>
#include <string>

namespace saccade::models {

// Returns an ONNX file with what SummariseOnnx() looks at in the file `path`: without nodes, and of
// initializers only the names. Blocks while reading. Throws a LoadError if the file cannot be read, is larger
// than `max_bytes`, or is cut short or damaged.
std::string ReadOnnxIndex(const std::string& path, int64_t max_bytes);

}  // namespace saccade::models
