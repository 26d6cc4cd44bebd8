// How much is taken and not answered yet: counted, or bounded.
#pragma once

#include <cstdint>

namespace saccade::server {

struct Inflight {
  int64_t requests = 0;
  int64_t bytes = 0;
  int64_t pixels = 0;
};

}  // namespace saccade::server
