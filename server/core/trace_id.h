// Trace and span ids of W3C Trace Context.
#pragma once

#include <cstdint>
#include <string>

namespace saccade::server {

// 16 bytes; `high` holds the first 8, big-endian. All zero means no trace.
struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;

  bool operator==(const TraceId&) const = default;
};

// 0 means no span.
using SpanId = uint64_t;

// A span that is exported to a collector; id 0 means none.
struct SampledSpan {
  TraceId trace = {};
  SpanId id = 0;

  bool operator==(const SampledSpan&) const = default;
};

// Formats an id as lower-case hexadecimal: 32 digits for a trace, 16 for a span.
std::string ToHex(TraceId id);
std::string ToHex(SpanId id);

}  // namespace saccade::server
