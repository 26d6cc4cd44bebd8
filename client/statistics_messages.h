// Statistics out of the protocol's message. Kept apart from statistics.h, whose readers need no protobuf
// header.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "client/statistics.h"
#include "inference/grpc_service.pb.h"

namespace saccade::client {

// INTERNAL if a version is no number.
absl::StatusOr<std::vector<ModelStatistics>> FromProto(const inference::ModelStatisticsResponse& response);

}  // namespace saccade::client
