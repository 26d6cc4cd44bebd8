// What attention looked at, in saccade.v1.
#pragma once

#include "absl/status/status.h"
#include "models/attention_probe.h"
#include "models/description.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// INVALID_ARGUMENT begins with the field's name.
absl::Status CheckExplain(const v1::Explain& message);

// INVALID_ARGUMENT, with those that there are, if the model has no such layer.
absl::Status CheckExplainFits(const v1::PredictRequest& message, const models::Description& model);

// REQUIRES: CheckExplain took it.
models::ExplanationWish WishOf(const v1::Explain& message);

// The error is the encoder's.
absl::Status SetExplanation(const models::Explanation& explanation, v1::Explanation* message);

}  // namespace saccade::server
