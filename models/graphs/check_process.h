// Runs saccade-openvino-check, the short-lived process that reads and compiles a graph before the daemon
// does.
#pragma once

#include <cstdint>
#include <string>

#include "models/graphs/graph_check.h"

namespace saccade::models {

// Waits for the process, and ends it when the time is over. Throws a LoadError with what OpenVINO found
// wrong, or how the process ended. Thread-safe.
void RunCheckProcess(const std::string& path, uint64_t memory_bytes, const GraphCheckLimits& limits);

}  // namespace saccade::models
