// saccade segment: what every pixel of pictures belongs to.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// As RunPictures.
int RunSegment(const SegmentCommand& command, Console& console);

}  // namespace saccade::client
