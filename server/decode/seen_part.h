// The part of a picture that a network sees.
#pragma once

#include "models/api/placement.h"

namespace saccade::server {

// In pixels of the picture, or of the region, that was sent. Beyond the picture the network sees black.
struct SeenPart {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

// Inverts what WriteInput() does to the picture. REQUIRES: both sides of `sent` are at least 1.
SeenPart SeenPartOf(const models::ImageInput& input, models::Size sent);

}  // namespace saccade::server
