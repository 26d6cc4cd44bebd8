// Load reports in the format of ORCA (Open Request Cost Aggregation), which gRPC and Envoy read.
#pragma once

#include <string>

#include "server/metrics/load_meter.h"

namespace saccade::server {

// Returns a serialised xds.data.orca.v3.OrcaLoadReport.
std::string OrcaLoadReport(const LoadReport& load);

}  // namespace saccade::server
