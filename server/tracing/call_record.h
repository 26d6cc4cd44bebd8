// A record of one call, from which its spans and its line in the access log are made when it ends.
//
// A call has a record only if it is sampled or logged (CallWatch). The stages of its path add what they
// observe, in order of time; the durations are computed from that when the call ends:
//
//   arrival ──decode──▶ Prepared ──queue──▶ first pass ──compute──▶ last pass's end ──encode──▶ End
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/call_head.h"
#include "server/core/clock.h"
#include "server/tracing/span.h"
#include "server/tracing/span_exporter.h"

namespace saccade::server {

// What the transport knows of a call before its message is read.
struct CallOrigin {
  // "saccade.v1.Vision/Predict"; over HTTP the route, "/v2/models/{model}/infer", and in http_method the HTTP
  // method.
  std::string_view method = {};
  std::string_view http_method = {};
  // As in CallHead.
  std::string client = {};
  // The value of the header x-request-id.
  std::string request_id = {};
  absl::Time arrival = {};

  bool is_http() const { return !http_method.empty(); }
  // The span's name: "POST /v2/models/{model}/infer", or only the method.
  std::string name() const;
};

// How a call ended.
struct CallOutcome {
  absl::Status status = {};
  // Size of the answer.
  int64_t bytes = 0;
  // 0 if the call was not made over HTTP.
  int http_status = 0;
};

// The facts about a whole call that the access log needs.
struct CallFacts {
  CallOrigin origin = {};
  CallOutcome end = {};
  std::string request_id = {};
  int64_t received_bytes = 0;
  // Zero if the call belongs to no trace.
  TraceId trace = {};
  std::string model = {};
  int64_t version = 0;
  int64_t batch_size = 0;
  absl::Duration decode = absl::ZeroDuration();
  absl::Duration queue = absl::ZeroDuration();
  absl::Duration compute = absl::ZeroDuration();
  absl::Duration encode = absl::ZeroDuration();
  absl::Duration total = absl::ZeroDuration();
};

// A forward pass that computed items of calls.
struct PassFacts {
  absl::Time started = {};
  absl::Time ended = {};
  // Items and calls in the pass.
  int64_t batch_size = 0;
  int64_t requests = 0;
  absl::Status status = {};
};

// Thread-safe.
class CallRecord : public std::enable_shared_from_this<CallRecord> {
 public:
  struct Sinks {
    Clock* clock = nullptr;
    // Null if the call is not sampled.
    SpanExporter* exporter = nullptr;
    // Null if there is no access log.
    const std::function<void(const CallFacts&)>* access_log = nullptr;
  };

  // `context` is the span context of the call itself, and `parent` the client's span, 0 if there is none. If
  // the call is not sampled, `context` may be empty. What `sinks` points to must outlive the record.
  CallRecord(const Sinks& sinks, CallOrigin origin, SpanContext context, SpanId parent);
  // Ends a call that was not ended as UNKNOWN.
  ~CallRecord();

  // Adds to the number of bytes received, for the message or a part of it.
  void AddReceived(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets what the message says. Not called if the message cannot be read.
  void Describe(const CallHead& head) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetVersion(int64_t version) ABSL_LOCKS_EXCLUDED(mutex_);
  // The call waits for a forward pass from `at` on. `decoded`: it was decoded before.
  void Prepared(absl::Time at, bool decoded) ABSL_LOCKS_EXCLUDED(mutex_);

  // Creates a record for a step of an ensemble. Its times and spans become part of this call's, and it is not
  // logged itself.
  std::shared_ptr<CallRecord> Step(absl::Time arrival);

  // Adds a pass to each of `members`, which has one entry for each share in it, and exports the pass itself,
  // which is a trace of its own linked with its members. Call before the shares end.
  static void AddPass(const std::vector<CallRecord*>& members, const PassFacts& pass);

  // Zero if the call belongs to no trace.
  TraceId trace() const { return context_.trace; }

  // The call's own span; empty if it is not sampled.
  SampledSpan sampled_span() const {
    return is_sampled() ? SampledSpan{context_.trace, context_.span} : SampledSpan{};
  }

  // Ends the call when there is an answer. Later calls have no effect.
  void End(CallOutcome end) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Pass {
    PassFacts facts = {};
    // The spans of this call's part in the pass, and of the pass itself.
    SpanId span = 0;
    SpanLink batch = {};
  };

  bool is_sampled() const { return sinks_.exporter != nullptr; }
  Span NewSpan(std::string_view name, absl::Time from, absl::Time to) const;
  // The spans of the call and of its stages.
  std::vector<Span> MakeSpans(absl::Time ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Span MakeOwnSpan(absl::Time ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DescribeEnd(Span& span) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CallFacts MakeFacts(absl::Time ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddStep(const CallFacts& step) ABSL_LOCKS_EXCLUDED(mutex_);

  const Sinks sinks_;
  const CallOrigin origin_;
  const SpanContext context_;
  const SpanId parent_;
  // For a step: the call that it belongs to.
  const std::shared_ptr<CallRecord> whole_;

  mutable absl::Mutex mutex_;
  std::string id_ ABSL_GUARDED_BY(mutex_);
  std::string model_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t received_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool decoded_ ABSL_GUARDED_BY(mutex_) = false;
  // InfinitePast() until Prepared() is called.
  absl::Time prepared_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::vector<Pass> passes_ ABSL_GUARDED_BY(mutex_);
  // Sums over all steps.
  CallFacts steps_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  CallOutcome end_ ABSL_GUARDED_BY(mutex_);

  CallRecord(const std::shared_ptr<CallRecord>& whole, absl::Time arrival);
};

}  // namespace saccade::server
