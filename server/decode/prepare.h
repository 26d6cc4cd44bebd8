// From a picture as it was sent to a network's input, in the arithmetic that torchvision's presets use.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/description.h"
#include "server/core/request.h"
#include "server/decode/picture_header.h"

namespace saccade::server {

// Decodes `picture`, scales its shorter side to `input.resize_short_side`, keeping the aspect ratio, cuts out
// the middle (or, without center_crop, squeezes the whole picture to height x width), and writes it to `out`,
// planar [3, height, width], as (value / 255 - mean) / std in the model's channel order. Returns the size of
// the picture as it was sent, upright by its EXIF orientation.
//
// Grey becomes three equal channels, 16 bits become 8, transparency and colour profiles are ignored. The
// numbers are those of torchvision's Resize(antialias=True) and CenterCrop, but not rounded to 8 bits in
// between. A JPEG at least four times as large as needed is shrunk while it is decoded, which differs by a
// few 8-bit steps.
//
// REQUIRES: out.size() == 3 * input.height * input.width; INTERNAL otherwise.
// Takes its time (a decode): call it on the decode pool. Memory is bounded by the decoded picture, whatever
// its shape. Thread-safe; throws nothing. INVALID_ARGUMENT for what is not a picture, is damaged, or exceeds
// `limits`; RESOURCE_EXHAUSTED if memory ran out.
absl::StatusOr<PictureSize> Prepare(const Picture& picture, const models::ImageInput& input,
                                    const DecodeLimits& limits, absl::Span<float> out);

}  // namespace saccade::server
