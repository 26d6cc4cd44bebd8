// Translates what was measured of a model's passes.
#pragma once

#include "saccade/v1/vision.pb.h"
#include "server/catalog/served_model.h"

namespace saccade::server {

// Sets all fields. `names_sizes` is true if the buckets' numbers are sizes (server/engine/item.h), which they
// are not for models of named tensors.
void ToMessage(const ModelTiming& timing, bool names_sizes, v1::Timing* message);

}  // namespace saccade::server
