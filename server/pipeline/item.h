// One item of a request, a picture, a stereo pair, a clip or a volume, as the network takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "models/placement.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

struct Item {
  models::Placement placement;
  // Fp32, perhaps not aligned: [channels, bucket height, bucket width]; as many of these as a clip has
  // frames; or a volume's [depth, bucket height, bucket width]. A tensor's item may lack its padding: it is
  // [..., scaled height, scaled width] then, and ends with the last frame that was sent.
  BytePieces pixels;
  // Keeps `pixels` alive; null where they are the client's own bytes.
  std::unique_ptr<const float[]> owned = nullptr;
};

// An item's pixels with their padding; `to` is as large as its bucket, all channels and frames. Each byte is
// copied once.
void WritePixels(const BytePieces& pixels, const models::Placement& placement, absl::Span<float> to);

// What tells one bucket of a model from another in its queue. No side reaches 2^24, no depth 2^16.
inline int64_t BucketId(const models::Placement& placement) {
  return placement.bucket.height << 40 | placement.bucket.width << 16 | placement.depth;
}

}  // namespace saccade::server
