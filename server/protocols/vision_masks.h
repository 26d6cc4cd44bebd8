// A detection's mask in the form that was asked for.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/placement.h"
#include "models/tasks/mask.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// `region` is where the mask lies in a picture of `whole`'s size. `form` is not NONE. The error is the
// encoder's.
absl::Status SetMask(const models::MaskRegion& region, models::Size whole, v1::DetectionOptions::Masks form,
                     float threshold, v1::Detection* message);

}  // namespace saccade::server
