#ifndef SACCADE_CLIENT_CLI_COMMANDS_EXTERNAL_H_
#define SACCADE_CLIENT_CLI_COMMANDS_EXTERNAL_H_

#include <string>
#include <vector>

namespace saccade::client {

// Commands that are programs of their own: bulk, evaluate, import, prove, replay and verify are saccade-bulk,
// saccade-evaluate, ... of the Python package, and `saccade quantize` runs saccade-quantize, which has
// LibTorch.
bool IsExternalCommand(const std::vector<std::string>& arguments);

// Replaces this process by the program saccade-NAME, found beside this one or in PATH, with the arguments
// behind the name. Returns only if that fails: an error that says how to install it.
std::string RunExternalCommand(const std::vector<std::string>& arguments);

}  // namespace saccade::client

#endif  // SACCADE_CLIENT_CLI_COMMANDS_EXTERNAL_H_
