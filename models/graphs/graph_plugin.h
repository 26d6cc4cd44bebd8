// Opens libsaccade_openvino.so, so that daemons without graphs do not need OpenVINO.
#pragma once

#include <string>

#include "models/graphs/graph_api.h"

namespace saccade::models {

// Opens the library in the folder of libsaccade_kernels.so. The first call takes some ten milliseconds, later
// ones return its result; a failed call is tried again by the next one. Thread-safe. Throws a LoadError that
// says what to install.
const GraphApi& TheGraphApi();

// The folder of the library, and of the program that checks files.
std::string GraphPluginFolder();

// Calls a function of the interface whose last arguments are a buffer for an error and its size. Throws Error
// with what the function wrote, if it returns `failed`.
template <typename Error, typename Result, typename Function>
Result CallGraph(Result failed, const Function& function) {
  char error[4096] = "no reason given";
  const Result result = function(error, sizeof(error));
  if (result == failed) throw Error(error);
  return result;
}

}  // namespace saccade::models
