#include "server/tracing/call_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/strip.h"
#include "server/tracing/attribute_names.h"

namespace saccade::server {
namespace {

constexpr std::string_view kStep = "step";
// Maximum length of a request's id and of the name of a model, which no model's exceeds.
constexpr size_t kMaxName = 128;
// Upper bound of the attributes of a call's own span.
constexpr size_t kMaxAttributes = 10;

// At most kMaxName bytes of a client's text. Spans are kept until they are exported, so their memory is
// bounded.
std::string Shortened(std::string_view text) { return std::string(text.substr(0, kMaxName)); }

std::string CodeName(const absl::Status& status) { return absl::StatusCodeToString(status.code()); }

// Follows the semantic conventions for gRPC servers: a client's error is not a failure of the server.
bool IsServersFault(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// Returns "10.0.0.7" for "ipv4:10.0.0.7", and "::1" for "ipv6:[::1]".
std::string AddressOf(std::string_view client) {
  absl::string_view address(client.data(), client.size());
  if (!absl::ConsumePrefix(&address, "ipv4:") && absl::ConsumePrefix(&address, "ipv6:[")) {
    absl::ConsumeSuffix(&address, "]");
  }
  return std::string(address);
}

SpanContext Within(SpanContext whole) {
  if (whole.sampled) whole.span = NewSpanId();
  return whole;
}

absl::Duration Positive(absl::Duration duration) { return std::max(duration, absl::ZeroDuration()); }

}  // namespace

std::string CallOrigin::name() const {
  std::string name(http_method);
  if (is_http()) name += ' ';
  return name += method;
}

CallRecord::CallRecord(const Sinks& sinks, CallOrigin origin, SpanContext context, SpanId parent)
    : sinks_(sinks),
      origin_(std::move(origin)),
      context_(std::move(context)),
      parent_(parent),
      id_(Shortened(origin_.request_id)) {}

CallRecord::CallRecord(const std::shared_ptr<CallRecord>& whole, absl::Time arrival)
    : sinks_(whole->sinks_),
      origin_({.method = kStep, .client = {}, .request_id = {}, .arrival = arrival}),
      context_(Within(whole->context_)),
      parent_(whole->context_.span),
      whole_(whole) {}

CallRecord::~CallRecord() {
  bool ended = false;
  {
    const absl::MutexLock lock(&mutex_);
    ended = ended_;
  }
  if (!ended) End({.status = absl::UnknownError("the call was not ended; this is a bug in saccaded")});
}

void CallRecord::AddReceived(int64_t bytes) {
  const absl::MutexLock lock(&mutex_);
  received_bytes_ += bytes;
}

void CallRecord::Describe(const CallHead& head) {
  const absl::MutexLock lock(&mutex_);
  model_ = Shortened(head.model);
  version_ = head.version;
  if (!head.id.empty()) id_ = Shortened(head.id);
}

void CallRecord::SetVersion(int64_t version) {
  const absl::MutexLock lock(&mutex_);
  version_ = version;
}

void CallRecord::Prepared(absl::Time at, bool decoded) {
  const absl::MutexLock lock(&mutex_);
  prepared_ = at;
  decoded_ = decoded;
}

std::shared_ptr<CallRecord> CallRecord::Step(absl::Time arrival) {
  return std::shared_ptr<CallRecord>(new CallRecord(shared_from_this(), arrival));
}

void CallRecord::AddPass(const std::vector<CallRecord*>& members, const PassFacts& pass) {
  const SpanLink batch{NewTraceId(), NewSpanId()};
  Span span{
      .trace = batch.trace, .id = batch.span, .name = "batch", .started = pass.started, .ended = pass.ended};
  SpanExporter* exporter = nullptr;
  for (CallRecord* const member : members) {
    const SpanId own = member->is_sampled() ? NewSpanId() : 0;
    const absl::MutexLock lock(&member->mutex_);
    member->passes_.push_back({.facts = pass, .span = own, .batch = batch});
    if (!member->is_sampled()) continue;
    if (exporter == nullptr) {
      span.attributes = {{attribute::kModelName, member->model_},
                         {attribute::kModelVersion, member->version_}};
    }
    exporter = member->sinks_.exporter;
    if (span.links.size() < Span::kMaxLinks) {
      span.links.push_back({member->context_.trace, own});
    } else {
      ++span.links_left_out;
    }
  }
  if (exporter == nullptr) return;
  span.attributes.push_back({attribute::kBatchSize, pass.batch_size});
  span.attributes.push_back({attribute::kBatchRequests, pass.requests});
  if (!pass.status.ok()) {
    span.failed = true;
    span.message = std::string(pass.status.message());
    span.attributes.push_back({attribute::kErrorType, CodeName(pass.status)});
  }
  // An initializer list would copy the span.
  std::vector<Span> spans;
  spans.push_back(std::move(span));
  exporter->Push(std::move(spans));
}

void CallRecord::End(CallOutcome end) {
  const absl::Time now = sinks_.clock->Now();
  std::vector<Span> spans;
  CallFacts facts;
  {
    const absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    end_ = std::move(end);
    if (is_sampled()) spans = MakeSpans(now);
    if (whole_ != nullptr || sinks_.access_log != nullptr) facts = MakeFacts(now);
  }
  if (is_sampled()) sinks_.exporter->Push(std::move(spans));
  if (whole_ != nullptr) {
    whole_->AddStep(facts);
  } else if (sinks_.access_log != nullptr) {
    (*sinks_.access_log)(facts);
  }
}

void CallRecord::AddStep(const CallFacts& step) {
  const absl::MutexLock lock(&mutex_);
  steps_.decode += step.decode;
  steps_.queue += step.queue;
  steps_.compute += step.compute;
  steps_.encode += step.encode;
  steps_.batch_size = std::max(steps_.batch_size, step.batch_size);
}

Span CallRecord::NewSpan(std::string_view name, absl::Time from, absl::Time to) const {
  return {.trace = context_.trace,
          .id = NewSpanId(),
          .parent = context_.span,
          .state = context_.state,
          .name = std::string(name),
          .started = from,
          .ended = std::max(from, to)};
}

Span CallRecord::MakeOwnSpan(absl::Time ended) const {
  Span span = NewSpan(origin_.name(), origin_.arrival, ended);
  span.id = context_.span;
  span.parent = parent_;
  span.attributes.reserve(kMaxAttributes);
  if (!model_.empty()) span.attributes.push_back({attribute::kModelName, model_});
  if (version_ != 0) span.attributes.push_back({attribute::kModelVersion, version_});
  if (whole_ != nullptr) return span;
  span.kind = Span::Kind::kServer;
  span.parent_is_remote = parent_ != 0;
  if (origin_.is_http()) {
    span.attributes.push_back({attribute::kHttpMethod, std::string(origin_.http_method)});
    span.attributes.push_back({attribute::kHttpRoute, std::string(origin_.method)});
  } else {
    span.attributes.push_back({attribute::kRpcSystem, std::string("grpc")});
    span.attributes.push_back({attribute::kRpcMethod, std::string(origin_.method)});
  }
  if (!origin_.client.empty())
    span.attributes.push_back({attribute::kClientAddress, AddressOf(origin_.client)});
  if (!id_.empty()) span.attributes.push_back({attribute::kRequestId, id_});
  span.attributes.push_back({attribute::kRequestBytes, received_bytes_});
  span.attributes.push_back({attribute::kResponseBytes, end_.bytes});
  return span;
}

void CallRecord::DescribeEnd(Span& span) const {
  const bool failed = end_.http_status != 0 ? end_.http_status >= 500 : IsServersFault(end_.status.code());
  if (whole_ == nullptr && end_.http_status != 0) {
    span.attributes.push_back({attribute::kHttpStatus, end_.http_status});
  } else if (whole_ == nullptr) {
    span.attributes.push_back({attribute::kRpcStatus, CodeName(end_.status)});
  }
  if (end_.status.ok()) return;
  span.attributes.push_back({attribute::kErrorType, CodeName(end_.status)});
  if (!failed) return;
  span.failed = true;
  span.message = std::string(end_.status.message());
}

std::vector<Span> CallRecord::MakeSpans(absl::Time ended) const {
  std::vector<Span> spans;
  // The call's own span and those of its stages.
  spans.reserve(4 + passes_.size());
  spans.push_back(MakeOwnSpan(ended));
  DescribeEnd(spans[0]);
  if (prepared_ == absl::InfinitePast()) return spans;
  if (decoded_) spans.push_back(NewSpan("decode", origin_.arrival, prepared_));
  absl::Time waited = ended;
  absl::Time computed = absl::InfinitePast();
  for (const Pass& pass : passes_) {
    waited = std::min(waited, pass.facts.started);
    computed = std::max(computed, pass.facts.ended);
  }
  spans.push_back(NewSpan("queue", prepared_, waited));
  for (const Pass& pass : passes_) {
    Span& span = spans.emplace_back(NewSpan("compute", pass.facts.started, pass.facts.ended));
    span.id = pass.span;
    span.links.push_back(pass.batch);
    span.attributes.push_back({attribute::kBatchSize, pass.facts.batch_size});
    span.failed = !pass.facts.status.ok();
    span.message = std::string(pass.facts.status.message());
  }
  if (!passes_.empty()) spans.push_back(NewSpan("encode", computed, ended));
  return spans;
}

CallFacts CallRecord::MakeFacts(absl::Time ended) const {
  CallFacts facts = steps_;
  facts.origin = origin_;
  facts.end = end_;
  facts.request_id = id_;
  facts.received_bytes = received_bytes_;
  facts.trace = context_.trace;
  facts.model = model_;
  facts.version = version_;
  facts.total = Positive(ended - origin_.arrival);
  if (prepared_ == absl::InfinitePast()) return facts;
  if (decoded_) facts.decode += Positive(prepared_ - origin_.arrival);
  absl::Time from = ended;
  absl::Time to = absl::InfinitePast();
  for (const Pass& pass : passes_) {
    from = std::min(from, pass.facts.started);
    to = std::max(to, pass.facts.ended);
    facts.batch_size = std::max(facts.batch_size, pass.facts.batch_size);
  }
  facts.queue += Positive(from - prepared_);
  if (passes_.empty()) return facts;
  facts.compute += Positive(to - from);
  facts.encode += Positive(ended - to);
  return facts;
}

}  // namespace saccade::server
