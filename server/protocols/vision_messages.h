// The only place that turns saccade.v1 messages into the server's own requests, and its answers back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "saccade/v1/vision.pb.h"
#include "server/core/request.h"
#include "server/pipeline/served_model.h"

namespace saccade::server {

// Of a request's id.
inline constexpr size_t kMostRequestId = 128;

// What every request says, whatever its input.
struct RequestFields {
  std::string_view model;
  int64_t version = 0;
  std::string_view request_id;
  int priority = 0;
};

// A request without input. INVALID_ARGUMENT begins with the field's name.
absl::StatusOr<Request> FromFields(const RequestFields& fields, std::string_view protocol);

// The result points into `message`, which must outlive it. Arrival, deadline and cancellation are the
// caller's to set. INVALID_ARGUMENT begins with the field's name.
absl::StatusOr<Request> FromMessage(const v1::PredictRequest& message);

// All of the answer but its timings. The error is that of encoding the result. REQUIRES: FromMessage took
// `request`.
absl::Status ToMessage(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message);

// The answer as ToMessage makes it, if that takes no more than `most` bytes with the `around` that its
// message has besides, and its timings. REQUIRES: as of ToMessage.
absl::Status SetAnswer(const Response& response, const v1::PredictRequest& request, int64_t most,
                       v1::PredictResponse* message, int64_t around = 0);

// All of the answer but its result and its timings. REQUIRES: the request was no tensor.
void SetFacts(const Response& response, const std::string& request_id, v1::PredictResponse* message);

// Known only once the rest was made.
void SetTimings(const Timings& timings, v1::PredictResponse* message);

void ToMessage(const ModelSnapshot& snapshot, v1::Model* message);

void SetDuration(absl::Duration duration, google::protobuf::Duration* message);

}  // namespace saccade::server
