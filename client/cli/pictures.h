// What the commands share that send pictures, or clips: classify, detect, segment, stereo, actions.
#pragma once

#include <vector>

#include "client/cli/console.h"
#include "client/cli/options.h"
#include "client/cli/task.h"

namespace saccade::client {

// Asks about all items and shows the answers in their order. Returns the exit code: of the first item that
// failed, in the order given.
int RunItems(const PicturesCommand& command, const std::vector<Item>& items, const Task& task,
             Console& console);

// The same of the command's inputs, as many an item as the task takes. kExitUsage if they make no items.
int RunPictures(const PicturesCommand& command, const Task& task, Console& console);

}  // namespace saccade::client
