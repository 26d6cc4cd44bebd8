// The threads that start the parts of one call: the steps of an ensemble, or the crops of a picture.
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

namespace saccade::server {

// A part may end on the thread that starts it, before that thread is back in its loop; the loop then goes on
// with what the part made ready, so that a chain of short parts does not recurse. A part that ends on another
// thread has its successors started there: the thread in the loop may be computing a part, and nothing may
// wait for that. Not thread-safe; guarded by the call's lock.
class StartingThreads {
 public:
  // Returns false if this thread is in the loop already; otherwise it is until Leave().
  bool Enter() {
    const std::thread::id self = std::this_thread::get_id();
    if (std::find(ids_.begin(), ids_.end(), self) != ids_.end()) return false;
    ids_.push_back(self);
    return true;
  }

  void Leave() { std::erase(ids_, std::this_thread::get_id()); }

 private:
  std::vector<std::thread::id> ids_;
};

}  // namespace saccade::server
