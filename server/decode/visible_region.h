// The part of a picture that a network sees.
#pragma once

#include "models/api/placement.h"

namespace saccade::server {

// In pixels of the picture or region that was sent. May extend beyond it; the network gets black there.
struct VisibleRegion {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// Inverts what WriteInput() does to the picture. REQUIRES: both sides of `sent` are at least 1.
VisibleRegion VisibleRegionOf(const models::ImageInput& input, models::Size sent);

}  // namespace saccade::server
