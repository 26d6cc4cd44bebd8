// Copies parts out of a picture that is decoded once.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "server/admission/admission.h"
#include "server/core/request.h"
#include "server/decode/decoder.h"

namespace saccade::server {

// Decodes `picture` for a model with this input, but at its full size, and copies the regions' pixels.
// Charges `ticket` for the picture and the parts before they take memory. Blocks; call it on the decode pool.
// Errors are those of the decoder, of `wanted` and of the ticket, and INTERNAL if a region is not within the
// picture.
absl::StatusOr<std::vector<RawPicture>> CutParts(const Picture& picture, const std::vector<Region>& regions,
                                                 const models::ImageInput& input, const Decoder& decoder,
                                                 Admission::Ticket& ticket, const StillWanted& wanted);

}  // namespace saccade::server
