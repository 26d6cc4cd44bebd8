// How a batch ended; used to plan later batches.
#pragma once

#include <cstdint>

namespace saccade::server {

struct PassEnd {
  // True if one pass computed the whole batch.
  bool whole = false;
  // The smallest number of items for which memory was insufficient; 0 if it was sufficient.
  int64_t no_room_for = 0;
  // The device no longer responds: no later pass in this process can succeed.
  bool device_lost = false;
};

}  // namespace saccade::server
