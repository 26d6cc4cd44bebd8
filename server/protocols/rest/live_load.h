// The models' current load: GET /v1/load.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/catalog/catalog.h"
#include "server/engine/pipeline.h"
#include "server/http/http_message.h"
#include "server/metrics/nvml.h"

namespace saccade::server {

struct LiveLoadOptions {
  int64_t max_message_bytes = 0;
  // As --grpc-port has it; 0 if the system chose it.
  int grpc_port = 0;
  std::string server_version = {};
  // The machine's GPUs; null if there are none. Thread-safe.
  std::function<std::vector<GpuReading>()> read_gpus = nullptr;
};

// Reads the driver's GPUs, one caller at a time. Null without a driver.
std::function<std::vector<GpuReading>()> GpuReader(std::unique_ptr<Nvml> nvml);

// Responds with counters of the models that are ready, which only grow, with the state and the device of all
// models, with what is queued and in flight, and with the options, which the page needs. Clients compute
// rates as differences of two responses. Both pointers must outlive the route's server.
HttpRoute LiveLoadRoute(const Catalog* catalog, const Pipeline* pipeline, const LiveLoadOptions& options);

}  // namespace saccade::server
