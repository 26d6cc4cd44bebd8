// What the commands share that send pictures: classify, detect, segment, stereo.
#pragma once

#include "client/cli/console.h"
#include "client/cli/options.h"
#include "client/cli/task.h"

namespace saccade::client {

// Asks about all pictures and shows the answers in their order. Returns the exit code: of the first item that
// failed, in the order given; kExitUsage if the pictures make no items.
int RunPictures(const PicturesCommand& command, const Task& task, Console& console);

// Of the command line.
RequestOptions RequestOf(const PicturesCommand& command);

}  // namespace saccade::client
