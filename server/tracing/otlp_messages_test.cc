#include "server/tracing/otlp_messages.h"

#include <gtest/gtest.h>

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"

namespace saccade::server {
namespace {

opentelemetry::proto::trace::v1::Span Sent(const Span& span) {
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest request;
  EXPECT_TRUE(request.ParseFromString(ToOtlp({span}, {{"service.name", "eyes"}}, "1")));
  EXPECT_EQ(request.resource_spans(0).resource().attributes(0).value().string_value(), "eyes");
  return request.resource_spans(0).scope_spans(0).spans(0);
}

std::string Text(const std::string& value) {
  return Sent({.trace = {1, 2}, .id = 3, .attributes = {{"text", value}}})
      .attributes(0)
      .value()
      .string_value();
}

TEST(OtlpMessages, HaveWhatASpanHas) {
  const auto sent = Sent({.trace = {1, 2},
                          .id = 3,
                          .parent = 4,
                          .parent_is_remote = true,
                          .state = "a=b",
                          .name = "one",
                          .kind = Span::Kind::kServer,
                          .started = absl::FromUnixNanos(1'700'000'000'000'000'001),
                          .ended = absl::FromUnixNanos(1'700'000'000'000'000'002),
                          .attributes = {{"number", int64_t{-5}}},
                          .links = {{{5, 6}, 7}},
                          .links_left_out = 8,
                          .failed = true,
                          .message = "why"});
  EXPECT_EQ(sent.trace_id(), ToBytes(TraceId{1, 2}));
  EXPECT_EQ(sent.span_id(), ToBytes(SpanId{3}));
  EXPECT_EQ(sent.parent_span_id(), ToBytes(SpanId{4}));
  EXPECT_EQ(sent.trace_state(), "a=b");
  EXPECT_EQ(sent.flags(), 0x301U);
  EXPECT_EQ(sent.kind(), opentelemetry::proto::trace::v1::Span::SPAN_KIND_SERVER);
  EXPECT_EQ(sent.start_time_unix_nano(), 1'700'000'000'000'000'001U);
  EXPECT_EQ(sent.end_time_unix_nano(), 1'700'000'000'000'000'002U);
  EXPECT_EQ(sent.attributes(0).value().int_value(), -5);
  EXPECT_EQ(sent.links(0).trace_id(), ToBytes(TraceId{5, 6}));
  EXPECT_EQ(sent.links(0).span_id(), ToBytes(SpanId{7}));
  EXPECT_EQ(sent.dropped_links_count(), 8U);
  EXPECT_EQ(sent.status().code(), opentelemetry::proto::trace::v1::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(sent.status().message(), "why");
}

TEST(OtlpMessages, ManySpansAreOneMessage) {
  std::vector<Span> spans;
  for (SpanId id = 1; id <= 512; ++id) {
    spans.push_back(
        {.trace = {1, 2}, .id = id, .name = std::string(id, 'n'), .attributes = {{"id", int64_t(id)}}});
  }
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(ToOtlp(spans, {}, "1.2")));
  const auto& scope = request.resource_spans(0).scope_spans(0);
  EXPECT_EQ(scope.scope().name(), "saccaded");
  EXPECT_EQ(scope.scope().version(), "1.2");
  ASSERT_EQ(scope.spans_size(), 512);
  for (int i = 0; i < 512; ++i) {
    EXPECT_EQ(scope.spans(i).span_id(), ToBytes(spans[static_cast<size_t>(i)].id));
    EXPECT_EQ(scope.spans(i).name(), spans[static_cast<size_t>(i)].name);
    EXPECT_EQ(scope.spans(i).attributes(0).value().int_value(), i + 1);
  }
}

TEST(OtlpMessages, ARootHasNoParent) {
  EXPECT_EQ(Sent({.trace = {1, 2}, .id = 3}).parent_span_id(), "");
  EXPECT_FALSE(Sent({.trace = {1, 2}, .id = 3}).has_status());
}

TEST(OtlpMessages, TextsAreUtf8AndNotTooLong) {
  EXPECT_EQ(Text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x91\x81"),
            "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x91\x81");
  EXPECT_EQ(Text("a\xff"
                 "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(Text("\xc3"), "\xef\xbf\xbd");
  EXPECT_EQ(Text("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(Text("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(Text(std::string(2000, 'x')).size(), 1024U);
}

TEST(OtlpMessages, ReadWhatACollectorRejected) {
  opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse response;
  response.mutable_partial_success()->set_rejected_spans(2);
  response.mutable_partial_success()->set_error_message("odd");
  EXPECT_EQ(ReadOtlpAnswer(response.SerializeAsString()).rejected, 2);
  EXPECT_EQ(ReadOtlpAnswer(response.SerializeAsString()).why, "odd");
  EXPECT_EQ(ReadOtlpAnswer("no message \xff").rejected, 0);
}

}  // namespace
}  // namespace saccade::server
