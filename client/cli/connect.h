// From the command line's connection to a client.
#pragma once

#include <memory>

#include "client/cli/console.h"
#include "client/cli/options.h"
#include "client/client.h"

namespace saccade::client {

// Null after complaining about a bad address or limit: the command ends with kExitUsage.
std::unique_ptr<Client> ConnectOrComplain(Console& console, const Connection& connection);

// Explains the failed call on err; returns the command's exit code.
int ComplainOf(Console& console, const Connection& connection, const absl::Status& status);

}  // namespace saccade::client
