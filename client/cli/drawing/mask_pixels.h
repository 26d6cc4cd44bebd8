// The pixels of a mask, in whichever form it came. No OpenCV here.
#pragma once

#include "absl/status/statusor.h"
#include "client/rle.h"
#include "client/types.h"

namespace saccade::client {

// All zero if there is no mask, or if it has no pixels. INTERNAL if what came is no mask of a picture of
// `width` x `height` pixels; nothing larger than the picture is allocated.
absl::StatusOr<MaskRegion> MaskPixels(const Detection& item, int width, int height);

}  // namespace saccade::client
