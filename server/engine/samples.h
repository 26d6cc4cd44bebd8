// A model's samples: files in its folder that are typical of the inputs of its requests.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/core/clock.h"
#include "server/engine/item.h"

namespace saccade::server {

// Reads one item as a request with these files would have it: one picture, volume or video, or for a stereo
// model the left and the right picture. INVALID_ARGUMENT names the file. Slow; thread-safe.
absl::StatusOr<Item> ReadSample(absl::Span<const std::string> files, const models::ImageInput& input,
                                Clock* clock);

}  // namespace saccade::server
