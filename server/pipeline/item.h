// One item of a request, a picture, a stereo pair, a clip or a volume, as the network takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "models/placement.h"

namespace saccade::server {

struct Item {
  models::Placement placement;
  // Fp32, perhaps not aligned: [channels, bucket height, bucket width]; as many of these as a clip has
  // frames; or a volume's [depth, bucket height, bucket width].
  absl::Span<const float> pixels;
  // Keeps `pixels` alive; null where they are the client's own bytes.
  std::unique_ptr<const float[]> owned = nullptr;
};

// What tells one bucket of a model from another in its queue. No side reaches 2^24, no depth 2^16.
inline int64_t BucketId(const models::Placement& placement) {
  return placement.bucket.height << 40 | placement.bucket.width << 16 | placement.depth;
}

}  // namespace saccade::server
