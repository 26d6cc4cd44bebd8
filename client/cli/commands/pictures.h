// Shared implementation of the commands that send pictures or clips: classify, detect, segment, stereo,
// depth, embed, actions.
#pragma once

#include <vector>

#include "client/cli/commands/options.h"
#include "client/cli/commands/task.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Sends all items and prints the results in their order. Returns the exit code of the first item, in the
// order given, that failed.
int RunItems(const PicturesCommand& command, const std::vector<Item>& items, const Task& task,
             Console& console);

// Makes items of the command's inputs, with as many pictures each as the task takes, and runs them.
// kExitUsage if a picture is left over.
int RunPictures(const PicturesCommand& command, const Task& task, Console& console);

}  // namespace saccade::client
