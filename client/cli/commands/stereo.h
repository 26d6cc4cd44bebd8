// saccade stereo: computes disparities of rectified pairs.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Like RunPictures, with left and right pictures in turn.
int RunStereo(const StereoCommand& command, Console& console);

}  // namespace saccade::client
