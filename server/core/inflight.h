// Amounts of admitted work that is not answered yet, either as counts or as bounds.
#pragma once

#include <cstdint>

namespace saccade::server {

struct Inflight {
  int64_t requests = 0;
  // Of inputs as received, and of large answers until they are sent.
  int64_t bytes = 0;
  // Of decoded pictures and network inputs.
  int64_t decoded_bytes = 0;
};

}  // namespace saccade::server
