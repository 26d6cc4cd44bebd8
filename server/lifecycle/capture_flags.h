// Flags for the capture of calls.
#pragma once

#include "server/capture/capture_settings.h"

namespace CLI {
class App;
}

namespace saccade::server {

// `options` must outlive parsing.
void AddCaptureFlags(CLI::App& app, CaptureOptions* options);

}  // namespace saccade::server
