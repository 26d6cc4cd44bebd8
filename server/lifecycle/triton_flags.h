// Flags of tritonserver that saccaded does not use, so that a command line written for Triton still works.
// Flags without effect for clients are ignored with a warning; others are rejected with advice.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace saccade::server {

// Adds the flags to `app`, hidden from its help. Parsing appends a sentence to `warnings` for each ignored
// flag; `warnings` must outlive it.
void AddTritonFlags(CLI::App& app, std::vector<std::string>* warnings);

}  // namespace saccade::server
