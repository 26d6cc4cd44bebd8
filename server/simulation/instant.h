// Virtual time: nanoseconds since the start of the simulation. Converted to absl::Time, the simulation starts
// at the Unix epoch.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace saccade::server::simulation {

using Instant = int64_t;

inline constexpr Instant kNever = std::numeric_limits<Instant>::max();
inline constexpr Instant kMicrosecond = 1'000;
inline constexpr Instant kMillisecond = 1'000'000;
inline constexpr Instant kSecond = 1'000'000'000;

inline absl::Time ToTime(Instant at) {
  return at == kNever ? absl::InfiniteFuture() : absl::UnixEpoch() + absl::Nanoseconds(at);
}

// Infinite times saturate to the limits of Instant.
inline Instant ToInstant(absl::Time at) { return absl::ToInt64Nanoseconds(at - absl::UnixEpoch()); }

inline Instant FromMilliseconds(double ms) { return static_cast<Instant>(ms * 1e6); }
inline double ToMilliseconds(Instant span) { return static_cast<double>(span) * 1e-6; }

}  // namespace saccade::server::simulation
