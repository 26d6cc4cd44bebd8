// What of a request goes into the network: checked against the model's input, decoded or padded into items.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "models/placement.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/decode/picture_header.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// What can be known of the input before it costs anything. INVALID_ARGUMENT for pictures where pairs are
// wanted or pairs where pictures are, and for tensors of a shape that the model does not take. Tensors of any
// size that its buckets hold are taken by models that keep the ratio: they are padded, never scaled.
absl::Status CheckInput(const Request& request, const std::string& model, const models::ImageInput& input);

// Whether the client's bytes are the network's input as they are. REQUIRES: CheckInput was OK.
bool IsReady(const Request& request, const models::ImageInput& input);

// Gives the call its items. Charges its ticket for every picture before it is decoded, and for the network's
// input before that is made. Takes its time unless IsReady: call it on the decode pool then. REQUIRES:
// CheckInput was OK. Errors as of ReadHeader, DecodePicture and AddPixels, beginning with the input's name,
// and those of CheckAlive; a call that failed is still to be refused.
absl::Status MakeItems(PredictCall& call, const models::ImageInput& input, const DecodeLimits& limits,
                       Clock* clock);

}  // namespace saccade::server
