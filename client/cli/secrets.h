// What a command shows a daemon of itself: certificates and a token, out of files and the environment.
#pragma once

#include "absl/status/status.h"
#include "client/cli/console.h"
#include "client/cli/options.h"
#include "client/client.h"

namespace saccade::client {

// Reads what the connection names into the options. Errors name the flag and the file. Warns of a token that
// others on this machine can read.
absl::Status ReadSecrets(const Connection& connection, Console& console, ClientOptions& options);

}  // namespace saccade::client
