// Attention maps in saccade.v1.
#pragma once

#include "absl/status/status.h"
#include "models/api/attention_probe.h"
#include "models/api/description.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/request.h"

namespace saccade::server {

// INVALID_ARGUMENT begins with the field's name.
absl::Status CheckExplain(const v1::Explain& message);

// INVALID_ARGUMENT, listing the model's layers, if the model does not have the requested one.
absl::Status CheckExplainFits(const v1::PredictRequest& message, const models::Description& model);

// REQUIRES: CheckExplain() accepted `message`.
models::ExplanationWish WishOf(const v1::Explain& message);

// Errors are those of the PNG encoder.
absl::Status SetExplanation(const models::Explanation& explanation, v1::Explanation* message);

// Sets the part of the picture that the maps of a model with this input cover.
void SetSeen(const models::ImageInput& input, const SentItem& sent, v1::Explanation* message);

}  // namespace saccade::server
