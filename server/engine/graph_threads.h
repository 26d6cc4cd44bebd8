// The threads of passes that OpenVINO computes.
#pragma once

#include "models/device/use_threads.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// To be called on a thread before it computes passes of the model. If the model is a graph, whose passes have
// OpenVINO's threads, ATen gets only the calling one: more would take the cores from OpenVINO's.
inline void LeaveCoresToGraph(const ModelSettings& settings) {
  if (IsGraph(settings.backend)) models::UseThreads(1);
}

}  // namespace saccade::server
