// One item of a request, a picture or a stereo pair, as the network takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "models/placement.h"

namespace saccade::server {

struct Item {
  models::Placement placement;
  // Normalised fp32 [channels, bucket height, bucket width], perhaps not aligned.
  absl::Span<const float> pixels;
  // Keeps `pixels` alive; null where they are the client's own bytes.
  std::unique_ptr<const float[]> owned = nullptr;
};

// What tells one bucket of a model from another in its queue.
inline int64_t BucketId(models::Size bucket) { return bucket.height << 32 | bucket.width; }

}  // namespace saccade::server
