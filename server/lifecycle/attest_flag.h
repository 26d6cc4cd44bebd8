// The flag with the key that answers are signed with.
#pragma once

#include "server/lifecycle/flags.h"

namespace CLI {
class App;
}

namespace saccade::server {

// Parsing reads the key, and also sets its fingerprint in the permissions of models. `flags` must outlive
// parsing.
void AddAttestFlag(CLI::App& app, Flags* flags);

}  // namespace saccade::server
