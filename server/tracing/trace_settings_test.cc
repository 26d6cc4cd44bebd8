#include "server/tracing/trace_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace saccade::server {
namespace {

using Variables = std::map<std::string, std::string>;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::StatusOr<std::optional<TraceSettings>> Read(const Variables& variables) {
  return ReadTraceSettings([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TraceSettings ReadGood(Variables variables) {
  variables.emplace("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
  auto read = Read(variables);
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read.ok() && read->has_value());
  return read.ok() ? read->value_or(TraceSettings()) : TraceSettings();
}

std::string WhyNot(Variables variables) {
  variables.emplace("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
  return std::string(Read(variables).status().message());
}

TEST(TraceSettings, WithoutAnEndpointThereAreNoTraces) {
  EXPECT_FALSE(Read({}).value().has_value());
  EXPECT_FALSE(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", " "}}).value().has_value());
  EXPECT_FALSE(Read({{"OTEL_TRACES_SAMPLER", "always_on"}}).value().has_value());
}

TEST(TraceSettings, CanBeSwitchedOff) {
  const std::string endpoint = "http://collector:4318";
  EXPECT_FALSE(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint}, {"OTEL_SDK_DISABLED", "TRUE"}}).value());
  EXPECT_FALSE(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint}, {"OTEL_TRACES_EXPORTER", "none"}}).value());
  EXPECT_TRUE(Read({{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint}, {"OTEL_SDK_DISABLED", "false"}}).value());
}

TEST(TraceSettings, ThePathIsTheSignalsUnlessItHasAnEndpointOfItsOwn) {
  EXPECT_EQ(ReadGood({}).endpoint, "http://collector:4318/v1/traces");
  EXPECT_EQ(ReadGood({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/"}}).endpoint,
            "https://c/otlp/v1/traces");
  EXPECT_EQ(ReadGood({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/spans"}}).endpoint,
            "http://t:1/spans");
}

TEST(TraceSettings, AnEndpointIsAUrl) {
  for (const char* const bad :
       {"collector:4318", "grpc://collector:4317", "http://", "http:///v1", "http://a b"}) {
    EXPECT_THAT(WhyNot({{"OTEL_EXPORTER_OTLP_ENDPOINT", bad}}), HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT is"))
        << bad;
  }
}

TEST(TraceSettings, KnowsTheSamplers) {
  const auto sampler = [](const char* name, const char* argument = "") {
    return ReadGood({{"OTEL_TRACES_SAMPLER", name}, {"OTEL_TRACES_SAMPLER_ARG", argument}}).sampler;
  };
  EXPECT_EQ(ReadGood({}).sampler.share, 1);
  EXPECT_TRUE(ReadGood({}).sampler.follows_client);
  EXPECT_EQ(sampler("always_off").share, 0);
  EXPECT_FALSE(sampler("always_off").follows_client);
  EXPECT_EQ(sampler("parentbased_always_off").share, 0);
  EXPECT_TRUE(sampler("parentbased_always_off").follows_client);
  EXPECT_EQ(sampler("traceidratio", "0.1").share, 0.1);
  EXPECT_EQ(sampler("parentbased_traceidratio").share, 1);
  EXPECT_EQ(sampler("always_on", "not looked at").share, 1);
}

TEST(TraceSettings, NamesTheVariableThatIsWrong) {
  const Variables bad = {
      {"OTEL_TRACES_SAMPLER", "jaeger_remote"},
      {"OTEL_SDK_DISABLED", "yes"},
      {"OTEL_TRACES_EXPORTER", "zipkin"},
      {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
      {"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip"},
      {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "api-key"},
      {"OTEL_RESOURCE_ATTRIBUTES", "a=%4"},
      {"OTEL_BSP_MAX_QUEUE_SIZE", "0"},
      {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4096"},
      {"OTEL_BSP_SCHEDULE_DELAY", "-1"},
      {"OTEL_BSP_EXPORT_TIMEOUT", "99999999"},
  };
  for (const auto& [name, value] : bad) {
    EXPECT_THAT(WhyNot({{name, value}}), HasSubstr(name)) << value;
    EXPECT_THAT(WhyNot({{name, value}}), HasSubstr("expected")) << value;
  }
  EXPECT_THAT(WhyNot({{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", "nan"}}),
              HasSubstr("OTEL_TRACES_SAMPLER_ARG is 'nan'"));
}

TEST(TraceSettings, DoesNotPrintAPassword) {
  EXPECT_THAT(WhyNot({{"OTEL_EXPORTER_OTLP_HEADERS", "a=b,s3cret"}}), Not(HasSubstr("s3cret")));
  // A line break would start another header.
  EXPECT_THAT(WhyNot({{"OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ac: d"}}),
              HasSubstr("OTEL_EXPORTER_OTLP_HEADERS"));
}

TEST(TraceSettings, ReadsPairs) {
  const TraceSettings settings = ReadGood({{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b==, x=1,"},
                                           {"OTEL_RESOURCE_ATTRIBUTES", "service.name=other,zone=b%2Cc"}});
  EXPECT_THAT(settings.headers, UnorderedElementsAre(Pair("api-key", "a b=="), Pair("x", "1")));
  EXPECT_THAT(settings.resource, UnorderedElementsAre(Pair("zone", "b,c")));
  EXPECT_EQ(settings.service_name, "other");
  EXPECT_EQ(ReadGood({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=other"}, {"OTEL_SERVICE_NAME", "own"}})
                .service_name,
            "own");
  EXPECT_EQ(ReadGood({}).service_name, "saccaded");
}

TEST(TraceSettings, WhatIsForTracesGoesFirst) {
  EXPECT_EQ(ReadGood({{"OTEL_EXPORTER_OTLP_TIMEOUT", "5000"}, {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "7000"}})
                .timeout,
            absl::Seconds(7));
  EXPECT_EQ(ReadGood({{"OTEL_EXPORTER_OTLP_TIMEOUT", "5000"}}).timeout, absl::Seconds(5));
}

TEST(TraceSettings, ABatchIsNoLargerThanTheQueue) {
  const TraceSettings settings =
      ReadGood({{"OTEL_BSP_MAX_QUEUE_SIZE", "10"}, {"OTEL_BSP_SCHEDULE_DELAY", "200"}});
  EXPECT_EQ(settings.max_queued, 10);
  EXPECT_EQ(settings.max_in_batch, 10);
  EXPECT_EQ(settings.delay, absl::Milliseconds(200));
}

}  // namespace
}  // namespace saccade::server
