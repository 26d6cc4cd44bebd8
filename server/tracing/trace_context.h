// W3C Trace Context: the trace to which a call belongs, passed between processes.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/core/trace_id.h"

namespace saccade::server {

// What child spans and links to a span need to know of it.
struct SpanContext {
  TraceId trace = {};
  SpanId span = 0;
  bool sampled = false;
  // The client's tracestate, passed on unchanged.
  std::string state = {};
};

// Parses the client's headers: all values of traceparent and of tracestate, in order. Returns nullopt unless
// there is exactly one traceparent and it is valid; the call then begins a new trace, and tracestate is
// ignored. An invalid tracestate is dropped. Fields that later versions add to traceparent are ignored.
std::optional<SpanContext> ReadTraceContext(absl::Span<const absl::string_view> traceparents,
                                            absl::Span<const absl::string_view> tracestates);

// Big-endian, 16 and 8 bytes.
std::string ToBytes(TraceId id);
std::string ToBytes(SpanId id);

// Random and never zero. Thread-safe.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace saccade::server
