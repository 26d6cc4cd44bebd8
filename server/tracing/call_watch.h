// Decides which calls are recorded: those whose trace is sampled, and all if there is an access log.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/core/clock.h"
#include "server/tracing/call_record.h"
#include "server/tracing/sampler.h"
#include "server/tracing/span_exporter.h"

namespace saccade::server {

// Immutable, so thread-safe.
class CallWatch {
 public:
  // Null pointers switch a feature off. Everything must outlive the watch and all its records.
  struct Options {
    Clock* clock = nullptr;
    SpanExporter* exporter = nullptr;
    Sampler sampler = {};
    std::function<void(const CallFacts&)> access_log = nullptr;
  };
  using Headers = absl::Span<const absl::string_view>;

  explicit CallWatch(Options options) : options_(std::move(options)) {}

  // Null if the call is neither sampled nor logged; `origin` is then not called. The headers are those of
  // ReadTraceContext().
  std::shared_ptr<CallRecord> Begin(Headers traceparents, Headers tracestates,
                                    absl::FunctionRef<CallOrigin()> origin) const;

 private:
  const Options options_;
};

}  // namespace saccade::server
