#pragma once

#include <functional>

#include "absl/status/status.h"

namespace saccade::server {

// Asked while a call's input is decoded: OK while its answer is needed, else the error that ends the call.
// Called on the thread that decodes. A null one means always.
using StillWanted = std::function<absl::Status()>;

}  // namespace saccade::server
