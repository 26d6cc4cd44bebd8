// Flags of gRPC's transport, under Triton's names.
#pragma once

#include <map>
#include <string>

namespace CLI {
class App;
}

namespace saccade::server {

// Adds the flags to `app`. Given flags are stored in `arguments` under gRPC's names; it must outlive parsing.
void AddGrpcFlags(CLI::App& app, std::map<std::string, int>* arguments);

}  // namespace saccade::server
