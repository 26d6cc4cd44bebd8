// Which forward passes may run inline, on the thread that submits a call, and how long they took.
//
// A pass that is shorter than waking an instance's thread is computed by the thread that submits it
// (ReadyModel::Submit). Whatever that thread would do next waits for the pass, and for long if the pass takes
// longer than expected. So a thread that still has calls to start, or answers to give, says so.
#pragma once

#include "absl/time/time.h"
#include "server/core/clock.h"

namespace saccade::server {

enum class InlinePasses {
  // Every batch goes to its instance's thread.
  kNone,
  // The batch that the submitted call completes may be computed here; those that follow it may not.
  kOwn,
  // Batches of other calls too, for a while.
  kAny,
};

// Limits what this thread computes while the object exists. Of several objects the strictest counts. They are
// destroyed in the reverse order of their creation, on the thread that made them.
class LimitInlinePasses {
 public:
  explicit LimitInlinePasses(InlinePasses limit);
  ~LimitInlinePasses();
  LimitInlinePasses(const LimitInlinePasses&) = delete;
  LimitInlinePasses& operator=(const LimitInlinePasses&) = delete;

  // What this thread may compute; kAny while no object exists on it.
  static InlinePasses Current();

 private:
  const InlinePasses before_;
};

// Time that this thread has spent on passes that it computed inline.
absl::Duration InlinePassTime();

// Adds the time from construction to destruction to InlinePassTime(). Of nested objects only the outermost
// counts.
class TimeInlinePasses {
 public:
  explicit TimeInlinePasses(Clock* clock);
  ~TimeInlinePasses();
  TimeInlinePasses(const TimeInlinePasses&) = delete;
  TimeInlinePasses& operator=(const TimeInlinePasses&) = delete;

 private:
  Clock* const clock_;
  const absl::Time begun_;
  const absl::Duration before_;
};

}  // namespace saccade::server
