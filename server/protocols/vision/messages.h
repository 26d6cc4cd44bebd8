// Converts between saccade.v1 messages and the server's types. No other file does that.
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
#include "server/catalog/served_model.h"
#include "server/core/request.h"

namespace saccade::server {

// Maximum length of a request's id.
inline constexpr size_t kMaxRequestId = 128;

// Fields that every request has, whatever its input.
struct RequestFields {
  std::string_view model;
  int64_t version = 0;
  std::string_view request_id;
  int priority = 0;
};

// Makes a request without input. INVALID_ARGUMENT begins with the field's name.
absl::StatusOr<Request> FromFields(const RequestFields& fields, std::string_view protocol);

// The result refers to `message`, which must outlive it. The caller sets arrival, deadline and cancellation.
// INVALID_ARGUMENT begins with the field's name.
absl::StatusOr<Request> FromMessage(const v1::PredictRequest& message);

// Sets all of the answer except its timings. Errors are those of encoding the result. REQUIRES: FromMessage()
// accepted `request`.
absl::Status ToMessage(const Response& response, const v1::PredictRequest& request,
                       v1::PredictResponse* message);

// Sets the answer as ToMessage() does, and its timings. RESOURCE_EXHAUSTED if it has more than `max` bytes
// together with `around`, the size of the message around it. REQUIRES: as ToMessage().
absl::Status SetAnswer(const Response& response, const v1::PredictRequest& request, int64_t max,
                       v1::PredictResponse* message, int64_t around = 0);

// Sets all of the answer except its result and its timings. REQUIRES: the request was not a tensor.
void SetFacts(const Response& response, const std::string& request_id, v1::PredictResponse* message);

// Separate, because the timings are only known once the rest has been made.
void SetTimings(const Timings& timings, v1::PredictResponse* message);

void ToMessage(const ModelSnapshot& snapshot, v1::Model* message);

void SetDuration(absl::Duration duration, google::protobuf::Duration* message);

}  // namespace saccade::server
