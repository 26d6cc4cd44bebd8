// The samples of models over HTTP: GET /v1/models/{model}/samples and /v1/models/{model}/samples/{sample}.
#pragma once

#include <cstdint>
#include <vector>

#include "server/catalog/catalog.h"
#include "server/core/byte_ledger.h"
#include "server/http/http_message.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

struct SampleRestOptions {
  const Catalog* catalog = nullptr;
  // Charged for the file until it is sent, so that slow readers cannot take all memory.
  ByteLedger* ledger = nullptr;
  RetryJitter* retry_jitter = nullptr;
  // Larger files are not listed: nobody could send them back.
  int64_t max_message_bytes = 0;
};

// All pointers must outlive the routes' server.
std::vector<HttpRoute> SampleRoutes(const SampleRestOptions& options);

}  // namespace saccade::server
