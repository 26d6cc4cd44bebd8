// Reads a command's certificates and token from files and the environment.
#pragma once

#include "absl/status/status.h"
#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"
#include "client/cpp/client.h"

namespace saccade::client {

// Reads the files that the connection names into the options. Errors name the flag and the file. Prints a
// warning if others on this machine can read the token's file.
absl::Status ReadSecrets(const Connection& connection, Console& console, ClientOptions& options);

}  // namespace saccade::client
