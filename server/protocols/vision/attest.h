// Signed statements in answers of saccade.v1.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "saccade/v1/vision.pb.h"
#include "server/engine/pipeline.h"
#include "server/protocols/call_scope.h"

namespace saccade::server {

// Bytes that an attestation may add to an answer; 0 if the daemon has no key.
int64_t AttestationSize(const Pipeline& pipeline);

// Signs the answer if its model asks for that, and else does nothing. Call it when the answer has all but its
// timings. `file`, if it is not empty, is the request's input, whose field is empty. INTERNAL if memory is
// short: the answer must then not be sent.
absl::Status Attest(const CallScope& scope, const v1::PredictRequest& request, v1::PredictResponse* answer,
                    absl::string_view file = {});

}  // namespace saccade::server
