// How a batch ended; used to plan later batches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/call_share.h"

namespace saccade::server {

struct FailedShare {
  std::unique_ptr<CallShare> share;
  absl::Status why;
};

struct PassEnd {
  // True if one pass computed the whole batch.
  bool whole = false;
  // True if a pass computed a part of the batch.
  bool part = false;
  // The smallest number of items for which memory was insufficient; 0 if it was sufficient.
  int64_t no_room_for = 0;
  // The device no longer responds: no later pass in this process can succeed on it.
  bool device_lost = false;
  // The shares that were not ended, if no item of the batch could be computed, or if the device was lost
  // before all were: another instance may be able to compute them.
  std::vector<FailedShare> failed = {};
};

}  // namespace saccade::server
