// Decodes a mask of any form into pixels. This header needs no OpenCV.
#pragma once

#include "absl/status/statusor.h"
#include "client/cpp/rle.h"
#include "client/cpp/types.h"

namespace saccade::client {

// All zero if there is no mask or the mask has no pixels. INTERNAL if it is not a valid mask of a picture of
// `width` x `height` pixels. Allocates no more than the picture's size.
absl::StatusOr<MaskRegion> MaskPixels(const Detection& item, int width, int height);

}  // namespace saccade::client
