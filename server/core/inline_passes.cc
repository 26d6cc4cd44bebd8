#include "server/core/inline_passes.h"

#include <algorithm>

namespace saccade::server {
namespace {

thread_local InlinePasses t_inline_passes = InlinePasses::kAny;
thread_local absl::Duration t_inline_pass_time = absl::ZeroDuration();

}  // namespace

LimitInlinePasses::LimitInlinePasses(InlinePasses limit) : before_(t_inline_passes) {
  t_inline_passes = std::min(before_, limit);
}

LimitInlinePasses::~LimitInlinePasses() { t_inline_passes = before_; }

InlinePasses LimitInlinePasses::Current() { return t_inline_passes; }

absl::Duration InlinePassTime() { return t_inline_pass_time; }

TimeInlinePasses::TimeInlinePasses(Clock* clock)
    : clock_(clock), begun_(clock->Now()), before_(t_inline_pass_time) {}

// Set and not added, because passes that answers have started are within this time.
TimeInlinePasses::~TimeInlinePasses() { t_inline_pass_time = before_ + (clock_->Now() - begun_); }

}  // namespace saccade::server
