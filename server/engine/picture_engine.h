// The engine of our own networks: pictures, stereo pairs, clips and volumes.
#pragma once

#include <memory>

#include "models/api/model.h"
#include "server/engine/engine.h"

namespace saccade::server {

// `settings` must outlive the engine.
std::unique_ptr<Engine> MakePictureEngine(std::unique_ptr<models::Model> model,
                                          const ModelSettings& settings);

}  // namespace saccade::server
