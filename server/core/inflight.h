// Amounts of admitted work that is not answered yet, either as counts or as bounds.
#pragma once

#include <cstdint>

namespace saccade::server {

struct Inflight {
  int64_t requests = 0;
  int64_t bytes = 0;
  int64_t pixels = 0;
};

}  // namespace saccade::server
