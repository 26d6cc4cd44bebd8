// Flags of tritonserver that saccaded has no use for, so that a command line written for Triton starts it:
// what changes nothing for clients is passed over with a warning, what would is refused with what to do
// instead.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace saccade::server {

// Adds them to `app`, hidden from its help. Parsing appends a sentence to `warnings` for each one that is
// passed over; `warnings` must outlive it.
void AddTritonFlags(CLI::App& app, std::vector<std::string>* warnings);

}  // namespace saccade::server
