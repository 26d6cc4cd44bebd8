// Names of traces and of the spans in them, as everybody has them who joins what he knows of one call.
#pragma once

#include <cstdint>
#include <string>

namespace saccade::server {

// 16 bytes, the first of them the highest of `high`. All zero is none.
struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;

  bool operator==(const TraceId&) const = default;
};

// 0 is none.
using SpanId = uint64_t;

// A span that goes to a collector; none where its id is.
struct SampledSpan {
  TraceId trace = {};
  SpanId id = 0;

  bool operator==(const SampledSpan&) const = default;
};

// Lower-case hexadecimal, 32 and 16 digits.
std::string ToHex(TraceId id);
std::string ToHex(SpanId id);

}  // namespace saccade::server
