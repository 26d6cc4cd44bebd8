// Amounts of admitted work that is not answered yet, either as counts or as bounds.
#pragma once

#include <cstdint>

namespace saccade::server {

struct Inflight {
  int64_t requests = 0;
  // Bytes of messages that are being received, inputs as received, and large answers until they are sent.
  int64_t bytes = 0;
  // Bytes of decoded pictures and network inputs.
  int64_t decoded_bytes = 0;
};

}  // namespace saccade::server
