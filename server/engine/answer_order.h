// Releases the answers of a model in the order in which its requests arrived (preserve_ordering).
#pragma once

#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// Thread-safe. An answer is held until all earlier requests have ended; the thread that ends the last of them
// also releases the held answers. A slow request therefore delays all later answers, whose memory stays
// charged. While the slow request is queued, its deadline or cancellation ends the delay; once it is being
// computed, only the end of its pass and of its encoding does.
class AnswerOrder {
 public:
  using Leave = absl::AnyInvocable<void() &&>;

  // A request's turn in the order. It is ended once, by Answer() or Skip(); the destructor calls Skip() if
  // neither was called. Not thread-safe itself, but may be passed between threads. Must not outlive its
  // order.
  class Turn {
   public:
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&&) = delete;
    ~Turn() { Skip(); }

    // Calls `leave` once all earlier turns have ended, and then releases the answers held behind it. The
    // calls run on this thread or on that of another Answer() or Skip(), never two at the same time. `leave`
    // must not block.
    void Answer(Leave leave);
    // Gives up the turn; later answers no longer wait for it.
    void Skip();

    // Higher than that of all earlier turns.
    int64_t number() const { return number_; }

   private:
    friend class AnswerOrder;
    Turn(AnswerOrder* order, int64_t number) : order_(order), number_(number) {}

    // Null once the turn has ended.
    AnswerOrder* order_;
    int64_t number_;
  };

  AnswerOrder() = default;
  // REQUIRES: every turn has ended, and the calls that ended them have returned.
  ~AnswerOrder() = default;
  AnswerOrder(const AnswerOrder&) = delete;
  AnswerOrder& operator=(const AnswerOrder&) = delete;

  // Takes the turn behind all earlier ones.
  Turn Enter() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Slot {
    bool ended = false;
    // Null if the turn was skipped.
    Leave leave = nullptr;
  };

  void End(int64_t number, Leave leave) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the first slot and sets `leave` to its callback, which may be null. Returns false if the first
  // slot has not ended; the thread that ends it then continues.
  bool TakeFirst(Leave& leave) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  // Slots of the turns that have not left yet. The front slot has the number first_.
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  int64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  // True while a thread is releasing answers.
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace saccade::server
