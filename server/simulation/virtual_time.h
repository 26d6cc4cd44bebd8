// Virtual time: the span since the start of the simulation. Converted to absl::Time, the simulation starts at
// the Unix epoch.
#pragma once

#include "absl/time/time.h"
#include "server/batching/nanos.h"

namespace saccade::server::simulation {

inline constexpr Nanos kNever = Nanos::Infinite();

inline absl::Time ToTime(Nanos at) { return absl::UnixEpoch() + ToDuration(at); }

inline Nanos ToNanos(absl::Time at) { return Nanos(at - absl::UnixEpoch()); }

inline constexpr Nanos FromSeconds(double seconds) { return Nanos(seconds * 1e9).Whole(); }
inline constexpr Nanos FromMilliseconds(double ms) { return Nanos(ms * 1e6).Whole(); }
inline constexpr double ToMilliseconds(Nanos span) { return span.count() * 1e-6; }

}  // namespace saccade::server::simulation
