#include "server/decode/visible_region.h"

#include "server/decode/resample.h"

namespace saccade::server {

VisibleRegion VisibleRegionOf(const models::ImageInput& input, models::Size sent) {
  const bool crop = input.medium != models::Medium::kVolume && input.fit == models::Fit::kCropCentre;
  if (!crop) return {0, 0, static_cast<double>(sent.width), static_cast<double>(sent.height)};
  const models::Size whole = models::SizeBeforeCrop(input, sent);
  const Axis x = CentreOf(sent.width, whole.width, input.width, input.crop_rounds_down);
  const Axis y = CentreOf(sent.height, whole.height, input.height, input.crop_rounds_down);
  return {static_cast<double>(x.offset) * x.scale, static_cast<double>(y.offset) * y.scale,
          static_cast<double>(x.length) * x.scale, static_cast<double>(y.length) * y.scale};
}

}  // namespace saccade::server
