#include "server/tracing/otlp_messages.h"

#include <algorithm>

#include "absl/time/time.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/tracing/message_writer.h"

namespace saccade::server {
namespace {

namespace otlp = opentelemetry::proto;
using OtlpSpan = otlp::trace::v1::Span;
using OtlpLink = OtlpSpan::Link;
using OtlpStatus = otlp::trace::v1::Status;
using otlp::common::v1::AnyValue;
using otlp::common::v1::KeyValue;

constexpr size_t kMaxText = 1024;
constexpr char kReplacement[] = "\xef\xbf\xbd";
// Upper bound of the bytes of most spans, with their attributes.
constexpr size_t kUsualSpan = 400;
// Bits of Span.flags.
constexpr uint32_t kSampled = 1;
constexpr uint32_t kKnowsWhetherRemote = 1U << 8;
constexpr uint32_t kIsRemote = 1U << 9;

// The number of bytes of the first UTF-8 character; 0 if it is invalid.
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

// Returns `text` itself if it is ASCII, which is the usual case; otherwise a cleaned copy in `clean`. At most
// kMaxText bytes of it are used.
std::string_view Utf8(std::string_view text, std::string& clean) {
  text = text.substr(0, kMaxText);
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; }))
    return text;
  clean.clear();
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

void AddText(MessageWriter& to, int field, std::string_view text) {
  std::string clean;
  to.AddBytes(field, Utf8(text, clean));
}

void AddTextAttribute(MessageWriter& to, int field, std::string_view name, std::string_view value) {
  const auto attribute = to.Begin(field);
  AddText(to, KeyValue::kKeyFieldNumber, name);
  const auto any = to.Begin(KeyValue::kValueFieldNumber);
  AddText(to, AnyValue::kStringValueFieldNumber, value);
  to.End(any);
  to.End(attribute);
}

void AddAttribute(MessageWriter& to, const Attribute& from) {
  if (const auto* text = std::get_if<std::string>(&from.value)) {
    AddTextAttribute(to, OtlpSpan::kAttributesFieldNumber, from.name, *text);
    return;
  }
  const auto attribute = to.Begin(OtlpSpan::kAttributesFieldNumber);
  AddText(to, KeyValue::kKeyFieldNumber, from.name);
  const auto any = to.Begin(KeyValue::kValueFieldNumber);
  to.AddVarint(AnyValue::kIntValueFieldNumber, static_cast<uint64_t>(std::get<int64_t>(from.value)));
  to.End(any);
  to.End(attribute);
}

void AddId(MessageWriter& to, int field, TraceId id) { to.AddBytes(field, ToBytes(id)); }

void AddId(MessageWriter& to, int field, SpanId id) { to.AddBytes(field, ToBytes(id)); }

void AddLink(MessageWriter& to, const SpanLink& from) {
  const auto link = to.Begin(OtlpSpan::kLinksFieldNumber);
  AddId(to, OtlpLink::kTraceIdFieldNumber, from.trace);
  AddId(to, OtlpLink::kSpanIdFieldNumber, from.span);
  to.AddFixed32(OtlpLink::kFlagsFieldNumber, kSampled | kKnowsWhetherRemote);
  to.End(link);
}

void AddSpan(MessageWriter& to, const Span& from) {
  const auto span = to.Begin(otlp::trace::v1::ScopeSpans::kSpansFieldNumber);
  AddId(to, OtlpSpan::kTraceIdFieldNumber, from.trace);
  AddId(to, OtlpSpan::kSpanIdFieldNumber, from.id);
  if (!from.state.empty()) to.AddBytes(OtlpSpan::kTraceStateFieldNumber, from.state);
  if (from.parent != 0) AddId(to, OtlpSpan::kParentSpanIdFieldNumber, from.parent);
  to.AddFixed32(OtlpSpan::kFlagsFieldNumber,
                kSampled | kKnowsWhetherRemote | (from.parent_is_remote ? kIsRemote : 0));
  AddText(to, OtlpSpan::kNameFieldNumber, from.name);
  to.AddVarint(OtlpSpan::kKindFieldNumber,
               from.kind == Span::Kind::kServer ? OtlpSpan::SPAN_KIND_SERVER : OtlpSpan::SPAN_KIND_INTERNAL);
  to.AddFixed64(OtlpSpan::kStartTimeUnixNanoFieldNumber,
                static_cast<uint64_t>(absl::ToUnixNanos(from.started)));
  to.AddFixed64(OtlpSpan::kEndTimeUnixNanoFieldNumber, static_cast<uint64_t>(absl::ToUnixNanos(from.ended)));
  for (const Attribute& attribute : from.attributes) AddAttribute(to, attribute);
  for (const SpanLink& link : from.links) AddLink(to, link);
  if (from.links_left_out != 0) to.AddVarint(OtlpSpan::kDroppedLinksCountFieldNumber, from.links_left_out);
  if (from.failed) {
    const auto status = to.Begin(OtlpSpan::kStatusFieldNumber);
    to.AddVarint(OtlpStatus::kCodeFieldNumber, OtlpStatus::STATUS_CODE_ERROR);
    AddText(to, OtlpStatus::kMessageFieldNumber, from.message);
    to.End(status);
  }
  to.End(span);
}

}  // namespace

std::string ToOtlp(const std::vector<Span>& spans, const ResourceAttributes& resource,
                   std::string_view version) {
  std::string bytes;
  bytes.reserve((spans.size() + 1) * kUsualSpan);
  MessageWriter to(bytes);
  const auto ours =
      to.Begin(otlp::collector::trace::v1::ExportTraceServiceRequest::kResourceSpansFieldNumber);
  const auto whose = to.Begin(otlp::trace::v1::ResourceSpans::kResourceFieldNumber);
  for (const auto& [name, value] : resource) {
    AddTextAttribute(to, otlp::resource::v1::Resource::kAttributesFieldNumber, name, value);
  }
  to.End(whose);
  const auto in_scope = to.Begin(otlp::trace::v1::ResourceSpans::kScopeSpansFieldNumber);
  const auto scope = to.Begin(otlp::trace::v1::ScopeSpans::kScopeFieldNumber);
  to.AddBytes(otlp::common::v1::InstrumentationScope::kNameFieldNumber, "saccaded");
  to.AddBytes(otlp::common::v1::InstrumentationScope::kVersionFieldNumber, version);
  to.End(scope);
  for (const Span& span : spans) AddSpan(to, span);
  to.End(in_scope);
  to.End(ours);
  return bytes;
}

OtlpAnswer ReadOtlpAnswer(const std::string& body) {
  otlp::collector::trace::v1::ExportTraceServiceResponse response;
  if (!response.ParseFromString(body)) return {};
  return {response.partial_success().rejected_spans(), response.partial_success().error_message()};
}

}  // namespace saccade::server
