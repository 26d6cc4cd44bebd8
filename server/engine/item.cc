#include "server/engine/item.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Copies one row of the picture and pads it to the bucket's width.
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
  // Rows of each channel of each frame. After the last frame that was sent, all are zero.
  for (int64_t y = 0; !to.empty(); ++y, to.remove_prefix(width)) {
    const bool inside = y % placement.bucket.height < placement.scaled.height && !from.done();
    WriteRow(from, inside ? static_cast<size_t>(placement.scaled.width) : 0, to.subspan(0, width));
  }
}

std::string BucketName(int64_t id) {
  const int64_t depth = id & 0xffff;
  return absl::StrCat(depth > 1 ? absl::StrCat(depth, "x") : "", id >> 40, "x", id >> 16 & 0xffffff);
}

}  // namespace saccade::server
