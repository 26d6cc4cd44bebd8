// Answers of one model in the order in which its requests came (preserve_ordering).
#pragma once

#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// Thread-safe. An answer whose predecessors have not left yet is held; whoever ends the one it waits for lets
// it go. One request that takes long therefore holds everybody's answers behind it, and their room with them:
// its deadline or its client's cancelling ends that while it waits, but once it is computed only the end of
// its forward pass does.
class AnswerOrder {
 public:
  using Leave = absl::AnyInvocable<void() &&>;

  // A request's place, ended once: by Answer, or by Skip, which the destructor calls if nobody else did. Not
  // thread-safe itself, but may be handed from thread to thread. Must not outlive its order.
  class Place {
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place() { Skip(); }

    // Calls `leave` once all before it have left, and with it whatever waited for it: on this thread, or on
    // that of another Answer or Skip, never two at the same time. `leave` must not block.
    void Answer(Leave leave);
    // Nobody waits for this place any more.
    void Skip();

   private:
    friend class AnswerOrder;
    Place(AnswerOrder* order, int64_t number) : order_(order), number_(number) {}

    // Null once it has ended.
    AnswerOrder* order_;
    int64_t number_;
  };

  AnswerOrder() = default;
  // REQUIRES: every place has ended, and the calls that ended them have returned.
  ~AnswerOrder() = default;
  AnswerOrder(const AnswerOrder&) = delete;
  AnswerOrder& operator=(const AnswerOrder&) = delete;

  // Behind all that have entered.
  Place Enter() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Slot {
    bool ended = false;
    // Null if it was skipped.
    Leave leave = nullptr;
  };

  void End(int64_t number, Leave leave) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next to leave; false if it is still awaited, and then whoever ends it begins anew.
  bool TakeFirst(Leave& leave) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  // Those who have not left; the first of them has the number first_.
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  int64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  // A thread is letting answers go.
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
