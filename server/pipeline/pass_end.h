// How a batch ended, for those who plan the next ones.
#pragma once

#include <cstdint>

namespace saccade::server {

struct PassEnd {
  // One pass was enough for all.
  bool whole = false;
  // Memory did not suffice for so many items at once, and perhaps for fewer; 0 if it did.
  int64_t no_room_for = 0;
  // What computes answers nothing any more: no pass can succeed in this process.
  bool device_lost = false;
};

}  // namespace saccade::server
