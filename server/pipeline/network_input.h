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

// What can be known of the input before it costs anything. INVALID_ARGUMENT for pictures where pairs, clips
// or volumes are wanted and the other way round, and for tensors as CheckTensor says.
absl::Status CheckInput(const Request& request, const std::string& model, const models::ImageInput& input);

// Whether the client's bytes are the network's input as they are, but for padding.
bool IsReady(const Request& request);

// Gives the call its items, and charges its ticket for them. Takes its time unless IsReady: call it on the
// decode pool then. REQUIRES: CheckInput was OK. Errors of reading and decoding begin with the input's name;
// others are those of AddPixels and CheckAlive. A call that failed is still to be refused.
absl::Status MakeItems(PredictCall& call, const models::ImageInput& input, const DecodeLimits& limits,
                       Clock* clock);

}  // namespace saccade::server
