// Converts models' statistics to messages of GRPCInferenceService.
#pragma once

#include "absl/types/span.h"
#include "inference/grpc_service.pb.h"
#include "server/inference/model_statistics.h"

namespace saccade::server {

void ToMessage(absl::Span<const ModelStatistics> statistics, inference::ModelStatisticsResponse* message);

}  // namespace saccade::server
