// Clips as the network takes them: of frames that came one by one, or of a video.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/placement.h"
#include "server/core/clock.h"
#include "server/decode/picture_header.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// Adds the request's item of that index. Of a video, frame k is the one that is seen k /
// input.clip.frames_per_second after its beginning. Frames that are added to reach the multiple are zero.
// Charges room as it grows, looks now and then whether the call is alive.
absl::Status MakeClipItem(PredictCall& call, const models::ImageInput& input, const DecodeLimits& limits,
                          Clock* clock, int64_t item);

}  // namespace saccade::server
