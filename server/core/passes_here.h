// Which forward passes a thread may compute that brings a call to its model.
//
// A pass that is shorter than waking an instance's thread is computed by the thread that submits it
// (ReadyModel::Submit). Whatever that thread would do next waits for the pass, and for long if the pass takes
// longer than expected. So a thread that still has calls to start, or answers to give, says so.
#pragma once

#include "absl/time/time.h"
#include "server/core/clock.h"

namespace saccade::server {

enum class PassesHere {
  // Every batch goes to its instance's thread.
  kNone,
  // The batch that the submitted call completes may be computed here; those that follow it may not.
  kOwn,
  // Batches of other calls too, for a while.
  kAny,
};

// Limits what this thread computes while the object exists. Of several objects the strictest counts. They are
// destroyed in the reverse order of their creation, on the thread that made them.
class LimitPassesHere {
 public:
  explicit LimitPassesHere(PassesHere limit);
  ~LimitPassesHere();
  LimitPassesHere(const LimitPassesHere&) = delete;
  LimitPassesHere& operator=(const LimitPassesHere&) = delete;

  // What this thread may compute; kAny while no object exists on it.
  static PassesHere Current();

 private:
  const PassesHere before_;
};

// Time that this thread has spent on passes that it computed for the calls which it submitted.
absl::Duration TimeOfPassesHere();

// Counts the time from its creation to its destruction as such. Of objects within one another the outermost
// counts.
class TimePassesHere {
 public:
  explicit TimePassesHere(Clock* clock);
  ~TimePassesHere();
  TimePassesHere(const TimePassesHere&) = delete;
  TimePassesHere& operator=(const TimePassesHere&) = delete;

 private:
  Clock* const clock_;
  const absl::Time begun_;
  const absl::Duration before_;
};

}  // namespace saccade::server
