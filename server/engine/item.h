// One item of a request in the network's input format: a picture, a stereo pair, a clip or a volume.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "models/api/placement.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

struct Item {
  models::Placement placement;
  // Float32 values, possibly unaligned: [channels, bucket height, bucket width], once for each frame of a
  // clip, or a volume's [depth, bucket height, bucket width]. An item of a tensor may lack its padding; it is
  // then [..., scaled height, scaled width], and ends with the last frame sent.
  BytePieces pixels;
  // Keeps `pixels` alive; null if they are the client's own bytes.
  std::unique_ptr<const float[]> owned = nullptr;
};

// Copies an item's pixels and adds their padding; each byte is copied once. `to` has the size of the bucket,
// with all channels and frames.
void WritePixels(const BytePieces& pixels, const models::Placement& placement, absl::Span<float> to);

// Identifies a bucket of a model in its queue. Sides are below 2^24, depths below 2^16.
inline int64_t BucketId(const models::Placement& placement) {
  return placement.bucket.height << 40 | placement.bucket.width << 16 | placement.depth;
}

// Returns "height x width" of the bucket with this number ("800x1344"), with the depth in front if it is more
// than 1.
std::string BucketName(int64_t id);

}  // namespace saccade::server
