// saccade embed: prints pictures as vectors.
#pragma once

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

// Like RunPictures, with one picture each.
int RunEmbed(const EmbedCommand& command, Console& console);

}  // namespace saccade::client
