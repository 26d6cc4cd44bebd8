// Looks through an ONNX file before OpenVINO reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saccade::models {

// A tensor whose values are in another file.
struct ExternalData {
  // The tensor's name, for errors.
  std::string tensor;
  // Relative to the folder of the ONNX file.
  std::string location;
  uint64_t offset = 0;
  // 0: up to the end of the file.
  uint64_t length = 0;
};

// Reads the lengths of all messages, and returns the external data of the graph, its subgraphs and functions.
// Throws a LoadError if the file is cut short, is no ONNX model, or nests too deeply.
std::vector<ExternalData> LookThroughOnnx(std::string_view file);

// Throws a LoadError unless the data is within a regular file of `folder`, also when symbolic links are
// followed: OpenVINO reads no other. A location with a hidden name or ".." is refused, because checksums
// leave hidden files out, and so is one by which OpenVINO reads its own memory. Blocks on the file system.
void CheckExternalData(const ExternalData& data, const std::filesystem::path& folder);

}  // namespace saccade::models
