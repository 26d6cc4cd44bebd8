#pragma once

#include <functional>

#include "absl/status/status.h"

namespace saccade::server {

// Asked while a call's input is decoded, and while a large answer is encoded: OK while the answer is needed,
// else the error that ends the call. Called on the thread that decodes or encodes. A null one means always.
using StillWanted = std::function<absl::Status()>;

}  // namespace saccade::server
