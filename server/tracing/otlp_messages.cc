#include "server/tracing/otlp_messages.h"

#include <google/protobuf/arena.h>

#include <algorithm>

#include "absl/time/time.h"
#include "models/api/text.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"

namespace saccade::server {
namespace {

namespace otlp = opentelemetry::proto;
using OtlpSpan = otlp::trace::v1::Span;
using OtlpStatus = otlp::trace::v1::Status;
using otlp::collector::trace::v1::ExportTraceServiceRequest;
using otlp::common::v1::KeyValue;

constexpr size_t kMaxText = 1024;
constexpr char kReplacement[] = "\xef\xbf\xbd";
constexpr size_t kArenaBlock = 256 * 1024;
// Bits of Span.flags.
constexpr uint32_t kSampled = 1;
constexpr uint32_t kKnowsWhetherRemote = 1U << 8;
constexpr uint32_t kIsRemote = 1U << 9;

// Returns at most the first kMaxText bytes, with invalid UTF-8 replaced.
std::string Utf8(std::string_view text) {
  text = text.substr(0, kMaxText);
  if (models::IsUtf8(text)) return std::string(text);
  std::string clean;
  while (!text.empty()) {
    const size_t bytes = models::Utf8CharacterBytes(text);
    clean += bytes == 0 ? kReplacement : text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return clean;
}

void SetAttribute(const Attribute& from, KeyValue* to) {
  to->set_key(from.name.data(), from.name.size());
  if (const auto* text = std::get_if<std::string>(&from.value)) {
    to->mutable_value()->set_string_value(Utf8(*text));
  } else {
    to->mutable_value()->set_int_value(std::get<int64_t>(from.value));
  }
}

void SetLink(const SpanLink& from, OtlpSpan::Link* to) {
  to->set_trace_id(ToBytes(from.trace));
  to->set_span_id(ToBytes(from.span));
  to->set_flags(kSampled | kKnowsWhetherRemote);
}

void SetSpan(const Span& from, OtlpSpan* to) {
  to->set_trace_id(ToBytes(from.trace));
  to->set_span_id(ToBytes(from.id));
  to->set_trace_state(from.state);
  if (from.parent != 0) to->set_parent_span_id(ToBytes(from.parent));
  to->set_flags(kSampled | kKnowsWhetherRemote | (from.parent_is_remote ? kIsRemote : 0));
  to->set_name(Utf8(from.name));
  to->set_kind(from.kind == Span::Kind::kServer ? OtlpSpan::SPAN_KIND_SERVER : OtlpSpan::SPAN_KIND_INTERNAL);
  to->set_start_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(from.started)));
  to->set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(from.ended)));
  for (const Attribute& attribute : from.attributes) SetAttribute(attribute, to->add_attributes());
  for (const SpanLink& link : from.links) SetLink(link, to->add_links());
  to->set_dropped_links_count(from.links_left_out);
  if (from.failed) {
    to->mutable_status()->set_code(OtlpStatus::STATUS_CODE_ERROR);
    to->mutable_status()->set_message(Utf8(from.message));
  }
}

}  // namespace

std::string ToOtlp(const std::vector<Span>& spans, const ResourceAttributes& resource,
                   std::string_view version) {
  // An export has some thousand nested messages: the arena allocates them together.
  google::protobuf::ArenaOptions options;
  options.start_block_size = kArenaBlock;
  options.max_block_size = kArenaBlock;
  google::protobuf::Arena arena(options);
  auto* request = google::protobuf::Arena::CreateMessage<ExportTraceServiceRequest>(&arena);
  auto* ours = request->add_resource_spans();
  for (const auto& [name, value] : resource) {
    KeyValue* attribute = ours->mutable_resource()->add_attributes();
    attribute->set_key(Utf8(name));
    attribute->mutable_value()->set_string_value(Utf8(value));
  }
  auto* scope = ours->add_scope_spans();
  scope->mutable_scope()->set_name("saccaded");
  scope->mutable_scope()->set_version(std::string(version));
  for (const Span& span : spans) SetSpan(span, scope->add_spans());
  return request->SerializeAsString();
}

OtlpAnswer ReadOtlpAnswer(const std::string& body) {
  otlp::collector::trace::v1::ExportTraceServiceResponse response;
  if (!response.ParseFromString(body)) return {};
  return {response.partial_success().rejected_spans(), response.partial_success().error_message()};
}

}  // namespace saccade::server
