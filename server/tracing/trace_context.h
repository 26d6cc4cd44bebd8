// Which trace a call belongs to, as W3C Trace Context tells it between processes.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/core/trace_id.h"

namespace saccade::server {

// What a span's children and those that link it have to know of it.
struct SpanContext {
  TraceId trace = {};
  SpanId span = 0;
  bool sampled = false;
  // As the client sent it; handed on, never read.
  std::string state = {};
};

// What the client's headers say: `traceparents` are all of that name, `tracestates` too, in their order.
// Nothing unless there is exactly one traceparent, and a good one: then the call begins a trace of its own,
// and what tracestate says of another is not looked at. A bad tracestate alone is left out. What a later
// version of traceparent adds is not read.
std::optional<SpanContext> ReadTraceContext(absl::Span<const absl::string_view> traceparents,
                                            absl::Span<const absl::string_view> tracestates);

// Big-endian, 16 and 8 bytes.
std::string ToBytes(TraceId id);
std::string ToBytes(SpanId id);

// Random, never none. Thread-safe.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace saccade::server
