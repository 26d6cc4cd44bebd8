// Volumes as the network takes them: as they are, in floats.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/placement.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// Adds the request's item of that index. Charges for its floats and for as many of the answer before either
// is there.
absl::Status MakeVolumeItem(PredictCall& call, const models::ImageInput& input, int64_t item);

}  // namespace saccade::server
