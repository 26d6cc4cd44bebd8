// Connects a client from the connection options of the command line.
#pragma once

#include <memory>

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"
#include "client/cpp/client.h"

namespace saccade::client {

// Returns null after printing an error for a bad address or option; the command then ends with kExitUsage.
std::unique_ptr<Client> ConnectOrComplain(Console& console, const Connection& connection);

// Prints an error for the failed call on err; returns the command's exit code.
int ComplainOf(Console& console, const Connection& connection, const absl::Status& status);

}  // namespace saccade::client
