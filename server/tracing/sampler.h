// Which calls are traced, as OTEL_TRACES_SAMPLER says.
#pragma once

#include <optional>

#include "server/tracing/trace_context.h"

namespace saccade::server {

struct Sampler {
  // Of traces: 1 is all of them, 0 none. The same trace is sampled by everyone who asks for the same share.
  double share = 1;
  // What the client decided holds for its calls; the share is then of those that begin a trace.
  bool follows_client = true;

  // `parent` is the client's span, if it told one; `trace` is the one that the call belongs to.
  bool Samples(TraceId trace, const std::optional<SpanContext>& parent) const;
};

}  // namespace saccade::server
