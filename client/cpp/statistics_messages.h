// Converts the protocol's message to statistics. Separate from statistics.h, whose users need no protobuf
// header.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/statistics.h"
#include "inference/grpc_service.pb.h"

namespace saccade::client {

// INTERNAL if a version is not a number.
absl::StatusOr<std::vector<ModelStatistics>> FromProto(const inference::ModelStatisticsResponse& response);

}  // namespace saccade::client
