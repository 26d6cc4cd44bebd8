#include "server/pipeline/item.h"

#include <algorithm>

namespace saccade::server {
namespace {

// One row of the picture into one of the bucket.
void WriteRow(PieceReader& from, size_t filled, absl::Span<float> to) {
  from.Read(filled * sizeof(float), reinterpret_cast<char*>(to.data()));
  std::fill(to.begin() + static_cast<int64_t>(filled), to.end(), 0.0F);
}

}  // namespace

void WritePixels(const BytePieces& pixels, const models::Placement& placement, absl::Span<float> to) {
  if (pixels.size() == to.size() * sizeof(float)) {
    pixels.CopyTo(reinterpret_cast<char*>(to.data()));
    return;
  }
  PieceReader from(pixels);
  const auto width = static_cast<size_t>(placement.bucket.width);
  // Of each channel of each frame; behind the last one that was sent there are zeros alone.
  for (int64_t y = 0; !to.empty(); ++y, to.remove_prefix(width)) {
    const bool inside = y % placement.bucket.height < placement.scaled.height && !from.done();
    WriteRow(from, inside ? static_cast<size_t>(placement.scaled.width) : 0, to.subspan(0, width));
  }
}

}  // namespace saccade::server
