// Programs that are graphs of operators, ONNX or OpenVINO's IR: data, which OpenVINO computes.
#pragma once

#include <memory>
#include <string>

#include "models/programs/program.h"

namespace saccade::models {

// True for the names of files that LoadGraph() reads: those that end in .onnx or .xml.
bool IsGraphFile(const std::string& path);

// Checks the file (graph_check.h), then reads and compiles it, for passes with as many threads as the calling
// thread uses (UsedThreads()). The file may be replaced or removed afterwards. Names of the signature are
// those of the graph's tensors, or stand for them as PositionsOf() says. The option `precision` is fp32
// (default) or bf16; float32 and bfloat16 are the same. Throws LoadError: also if the signature has other
// tensors, types or sizes than the graph.
std::unique_ptr<TensorProgram> LoadGraph(const std::string& path, ProgramOptions options);

}  // namespace saccade::models
