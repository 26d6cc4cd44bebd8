#include "server/core/passes_here.h"

#include <algorithm>

namespace saccade::server {
namespace {

thread_local PassesHere t_passes_here = PassesHere::kAny;
thread_local absl::Duration t_time_of_passes = absl::ZeroDuration();

}  // namespace

LimitPassesHere::LimitPassesHere(PassesHere limit) : before_(t_passes_here) {
  t_passes_here = std::min(before_, limit);
}

LimitPassesHere::~LimitPassesHere() { t_passes_here = before_; }

PassesHere LimitPassesHere::Current() { return t_passes_here; }

absl::Duration TimeOfPassesHere() { return t_time_of_passes; }

TimePassesHere::TimePassesHere(Clock* clock)
    : clock_(clock), begun_(clock->Now()), before_(t_time_of_passes) {}

// Set and not added, because passes that answers have started are within this time.
TimePassesHere::~TimePassesHere() { t_time_of_passes = before_ + (clock_->Now() - begun_); }

}  // namespace saccade::server
