// saccade segment: labels every pixel of pictures.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// Like RunPictures.
int RunSegment(const SegmentCommand& command, Console& console);

}  // namespace saccade::client
