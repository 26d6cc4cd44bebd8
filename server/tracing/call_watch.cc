#include "server/tracing/call_watch.h"

#include <optional>

#include "server/tracing/trace_context.h"

namespace saccade::server {

std::shared_ptr<CallRecord> CallWatch::Begin(Headers traceparents, Headers tracestates,
                                             absl::FunctionRef<CallOrigin()> origin) const {
  const std::optional<SpanContext> parent = ReadTraceContext(traceparents, tracestates);
  SpanContext context;
  if (parent) {
    context.trace = parent->trace;
    context.state = parent->state;
  } else if (options_.exporter != nullptr) {
    context.trace = NewTraceId();
  }
  context.sampled = options_.exporter != nullptr && options_.sampler.Samples(context.trace, parent);
  if (!context.sampled && options_.access_log == nullptr) return nullptr;
  if (context.sampled) {
    context.span = NewSpanId();
  } else if (!parent) {
    // A trace id made here is dropped: its trace is never exported, so the access log should not name it.
    context.trace = TraceId();
  }
  return std::make_shared<CallRecord>(
      CallRecord::Sinks{.clock = options_.clock,
                        .exporter = context.sampled ? options_.exporter : nullptr,
                        .access_log = options_.access_log == nullptr ? nullptr : &options_.access_log},
      origin(), std::move(context), parent ? parent->span : 0);
}

}  // namespace saccade::server
