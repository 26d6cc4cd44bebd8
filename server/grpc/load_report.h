// Load reports in trailers, as gRPC's weighted_round_robin and Envoy read them (ORCA).
#pragma once

#include "server/grpc/call.h"
#include "server/grpc/grpc_handler.h"

namespace saccade::server {

// The trailer with the report.
inline constexpr char kLoadTrailer[] = "endpoint-load-metrics-bin";
// A call asks for the report with this metadata, whose value is "bin".
inline constexpr char kLoadWish[] = "endpoint-load-metrics-format";

// Adds the report to the trailers, if the call or the options ask for it.
void AddLoadReport(const GrpcHandler::Options& options, const CallStart& start, CallEnd* end);

}  // namespace saccade::server
