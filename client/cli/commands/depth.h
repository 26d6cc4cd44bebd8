// saccade depth: computes depth maps of pictures.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Like RunPictures, with one picture each.
int RunDepth(const DepthCommand& command, Console& console);

}  // namespace saccade::client
