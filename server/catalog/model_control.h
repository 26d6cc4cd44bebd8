// When models are loaded and unloaded.
#pragma once

namespace saccade::server {

enum class ModelControl {
  // All models are loaded at start; nothing changes afterwards.
  kNone,
  // All models are loaded at start; later changes of the repositories are followed.
  kPoll,
  // Models named on the command line are loaded at start; later Load() and Unload() decide.
  kExplicit,
};

}  // namespace saccade::server
