// saccade segment: labels every pixel of pictures.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Like RunPictures.
int RunSegment(const SegmentCommand& command, Console& console);

}  // namespace saccade::client
