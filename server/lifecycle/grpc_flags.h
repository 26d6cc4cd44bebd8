// What gRPC's transport is told, under Triton's names.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace saccade::server {

// Adds them to `app`. Those that are given stand in `arguments` by gRPC's own names; it must outlive parsing.
void AddGrpcFlags(CLI::App& app, std::map<std::string, int>* arguments);

}  // namespace saccade::server
