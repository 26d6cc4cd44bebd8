#include "server/tracing/sampler.h"

#include <cmath>
#include <cstdint>

namespace saccade::server {

bool Sampler::Samples(TraceId trace, const std::optional<SpanContext>& parent) const {
  if (follows_client && parent) return parent->sampled;
  if (share >= 1) return true;
  // Compares the low 63 bits of the id with the share of their range, like other implementations of
  // OpenTelemetry.
  return trace.low >> 1 < static_cast<uint64_t>(std::ldexp(share, 63));
}

}  // namespace saccade::server
