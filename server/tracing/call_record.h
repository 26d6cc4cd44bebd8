// What is told of one call when it has ended: its spans, and its line in the access log.
//
// A call has one only if somebody wants to know of it (CallWatch). The rooms on its way write down what they
// see, in the order in which it happens; the stages are made of that when the call ends:
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

// What its transport knows of a call before its message is read.
struct CallOrigin {
  // "saccade.v1.Vision/Predict"; over HTTP the route, "/v2/models/{model}/infer", and by which method it
  // came.
  std::string_view method = {};
  std::string_view http_method = {};
  // As CallHead has it.
  std::string client = {};
  // Of the header x-request-id.
  std::string request_id = {};
  absl::Time arrival = {};

  bool is_http() const { return !http_method.empty(); }
  // Of the span: "POST /v2/models/{model}/infer", or just the method.
  std::string name() const;
};

// How a call ended.
struct CallEnd {
  absl::Status status = {};
  // Of the answer.
  int64_t bytes = 0;
  // 0 where it was not HTTP.
  int http_status = 0;
};

// A whole call, for the access log.
struct CallFacts {
  CallOrigin origin = {};
  CallEnd end = {};
  std::string request_id = {};
  int64_t received_bytes = 0;
  // None if it belongs to no trace.
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

// A forward pass that items of calls took part in.
struct PassFacts {
  absl::Time started = {};
  absl::Time ended = {};
  // Items of all calls in it, and how many calls these are.
  int64_t batch_size = 0;
  int64_t requests = 0;
  absl::Status status = {};
};

// Thread-safe.
class CallRecord : public std::enable_shared_from_this<CallRecord> {
 public:
  struct Readers {
    Clock* clock = nullptr;
    // Null if the call is not sampled.
    SpanExporter* exporter = nullptr;
    // Null if there is no access log.
    const std::function<void(const CallFacts&)>* tell = nullptr;
  };

  // `context` is the call's own span, of which `parent` is the client's; it may have none, and where nothing
  // is sampled it may be none itself. What `readers` points to must outlive the record.
  CallRecord(const Readers& readers, CallOrigin origin, SpanContext context, SpanId parent);
  // A call of which nobody said how it ended is told as one that nobody knows of.
  ~CallRecord();

  // Of its message, or of a part of it.
  void AddReceived(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the message says; a message that cannot be read never says anything.
  void Describe(const CallHead& head) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetVersion(int64_t version) ABSL_LOCKS_EXCLUDED(mutex_);
  // From here on it waits for a forward pass. `decoded`: there was something to be done for that.
  void Prepared(absl::Time at, bool decoded) ABSL_LOCKS_EXCLUDED(mutex_);

  // A call that is made for this one, a step of an ensemble. It is told with this one's spans, and not by
  // itself.
  std::shared_ptr<CallRecord> Step(absl::Time arrival);

  // Writes a pass down for each of `members`, of which there is one for each share of a call in it; and the
  // pass itself, which has a trace of its own, with links to its members and from them. Call it before the
  // shares end.
  static void AddPass(const std::vector<CallRecord*>& members, const PassFacts& pass);

  // None if it belongs to none.
  TraceId trace() const { return context_.trace; }

  // Of the call itself; none if it is not sampled.
  SampledSpan sampled_span() const {
    return is_sampled() ? SampledSpan{context_.trace, context_.span} : SampledSpan{};
  }

  // Once, when there is an answer.
  void End(CallEnd end) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Pass {
    PassFacts facts = {};
    // The span of this call's part in it, and the pass's own.
    SpanId span = 0;
    SpanLink batch = {};
  };

  bool is_sampled() const { return readers_.exporter != nullptr; }
  Span NewSpan(std::string_view name, absl::Time from, absl::Time to) const;
  // Of the call, and of its stages.
  std::vector<Span> MakeSpans(absl::Time ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Span MakeOwnSpan(absl::Time ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DescribeEnd(Span& span) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CallFacts MakeFacts(absl::Time ended) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddStep(const CallFacts& step) ABSL_LOCKS_EXCLUDED(mutex_);

  const Readers readers_;
  const CallOrigin origin_;
  const SpanContext context_;
  const SpanId parent_;
  // Of a step: the call that it is made for.
  const std::shared_ptr<CallRecord> whole_;

  mutable absl::Mutex mutex_;
  std::string id_ ABSL_GUARDED_BY(mutex_);
  std::string model_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t received_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool decoded_ ABSL_GUARDED_BY(mutex_) = false;
  // The infinite past until it is.
  absl::Time prepared_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::vector<Pass> passes_ ABSL_GUARDED_BY(mutex_);
  // Of all steps together.
  CallFacts steps_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  CallEnd end_ ABSL_GUARDED_BY(mutex_);

  CallRecord(const std::shared_ptr<CallRecord>& whole, absl::Time arrival);
};

}  // namespace saccade::server
