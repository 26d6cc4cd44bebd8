#include "server/tracing/otlp_messages.h"

#include <algorithm>

#include "absl/time/time.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"

namespace saccade::server {
namespace {

namespace otlp = opentelemetry::proto;

constexpr size_t kMostText = 1024;
constexpr char kReplacement[] = "\xef\xbf\xbd";
// Of Span.flags.
constexpr uint32_t kSampled = 1;
constexpr uint32_t kKnowsWhetherRemote = 1U << 8;
constexpr uint32_t kIsRemote = 1U << 9;

// Of the character at the beginning; 0 if there is none.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xc2 && byte(0) < 0xe0) return follows(1) ? 2 : 0;
  if (byte(0) >= 0xe0 && byte(0) < 0xf0) {
    const bool overlong = byte(0) == 0xe0 && text.size() > 1 && byte(1) < 0xa0;
    const bool surrogate = byte(0) == 0xed && text.size() > 1 && byte(1) >= 0xa0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (byte(0) >= 0xf0 && byte(0) < 0xf5) {
    const bool overlong = byte(0) == 0xf0 && text.size() > 1 && byte(1) < 0x90;
    const bool beyond = byte(0) == 0xf4 && text.size() > 1 && byte(1) >= 0x90;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string Utf8(std::string_view text) {
  text = text.substr(0, kMostText);
  std::string clean;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      clean += kReplacement;
    } else {
      clean += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return clean;
}

template <typename Message>
void AddText(Message* message, std::string_view name, std::string_view value) {
  otlp::common::v1::KeyValue* const attribute = message->add_attributes();
  attribute->set_key(Utf8(name));
  attribute->mutable_value()->set_string_value(Utf8(value));
}

void SetLink(const SpanLink& from, otlp::trace::v1::Span::Link* to) {
  to->set_trace_id(ToBytes(from.trace));
  to->set_span_id(ToBytes(from.span));
  to->set_flags(kSampled | kKnowsWhetherRemote);
}

void SetSpan(const Span& from, otlp::trace::v1::Span* to) {
  to->set_trace_id(ToBytes(from.trace));
  to->set_span_id(ToBytes(from.id));
  to->set_trace_state(from.state);
  if (from.parent != 0) to->set_parent_span_id(ToBytes(from.parent));
  to->set_flags(kSampled | kKnowsWhetherRemote | (from.parent_is_remote ? kIsRemote : 0));
  to->set_name(Utf8(from.name));
  to->set_kind(from.kind == Span::Kind::kServer ? otlp::trace::v1::Span::SPAN_KIND_SERVER
                                                : otlp::trace::v1::Span::SPAN_KIND_INTERNAL);
  to->set_start_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(from.started)));
  to->set_end_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(from.ended)));
  for (const Attribute& attribute : from.attributes) {
    if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      AddText(to, attribute.name, *text);
    } else {
      otlp::common::v1::KeyValue* const number = to->add_attributes();
      number->set_key(std::string(attribute.name));
      number->mutable_value()->set_int_value(std::get<int64_t>(attribute.value));
    }
  }
  for (const SpanLink& link : from.links) SetLink(link, to->add_links());
  to->set_dropped_links_count(from.links_left_out);
  if (!from.failed) return;
  to->mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
  to->mutable_status()->set_message(Utf8(from.message));
}

}  // namespace

std::string ToOtlp(const std::vector<Span>& spans, const ResourceAttributes& resource,
                   std::string_view version) {
  otlp::collector::trace::v1::ExportTraceServiceRequest request;
  otlp::trace::v1::ResourceSpans* const ours = request.add_resource_spans();
  for (const auto& [name, value] : resource) AddText(ours->mutable_resource(), name, value);
  otlp::trace::v1::ScopeSpans* const scope = ours->add_scope_spans();
  scope->mutable_scope()->set_name("saccaded");
  scope->mutable_scope()->set_version(std::string(version));
  for (const Span& span : spans) SetSpan(span, scope->add_spans());
  return request.SerializeAsString();
}

OtlpAnswer ReadOtlpAnswer(const std::string& body) {
  otlp::collector::trace::v1::ExportTraceServiceResponse response;
  if (!response.ParseFromString(body)) return {};
  return {response.partial_success().rejected_spans(), response.partial_success().error_message()};
}

}  // namespace saccade::server
