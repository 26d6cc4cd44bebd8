// Checks the options of saccade.v1 requests before anything is computed.
#pragma once

#include "absl/status/status.h"
#include "models/api/description.h"
#include "saccade/v1/vision.pb.h"

namespace saccade::server {

// INVALID_ARGUMENT begins with the field's name.
absl::Status CheckOptions(const v1::PredictRequest& message);

absl::Status CheckOptions(const v1::RestorationOptions& options);

// INVALID_ARGUMENT if the options are for another task than the model's, or name a class that it does not
// have. REQUIRES: CheckOptions() accepted `message`.
absl::Status CheckOptionsFit(const v1::PredictRequest& message, const models::Description& model);

}  // namespace saccade::server
