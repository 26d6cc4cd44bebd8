// saccade stereo: disparities of rectified pairs.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"

namespace saccade::client {

// As RunPictures, with a left and a right picture in turn.
int RunStereo(const StereoCommand& command, Console& console);

}  // namespace saccade::client
