// Decides which calls are traced, as configured by OTEL_TRACES_SAMPLER.
#pragma once

#include <optional>

#include "server/tracing/trace_context.h"

namespace saccade::server {

struct Sampler {
  // The share of traces that are sampled, 0 to 1. All processes with the same share sample the same traces.
  double share = 1;
  // If true, a call follows its client's decision, and `share` applies only to calls that begin a trace.
  bool follows_client = true;

  // `parent` is the client's span, if the request has one; `trace` is the trace of the call.
  bool Samples(TraceId trace, const std::optional<SpanContext>& parent) const;
};

}  // namespace saccade::server
