#include "server/capture/cloud_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ValueOf(const CloudEvent& event, const std::string& name) {
  for (const auto& [header, value] : event.headers) {
    if (header == name) return value;
  }
  return "";
}

CapturedCall MakeCall() {
  CapturedCall call;
  call.transport = "http";
  call.target = "/v2/models/cat/infer";
  call.headers = {{"content-type", "application/json"}};
  call.answer_headers = {{"content-type", "application/octet-stream"}};
  call.model = "cat";
  call.arrival = absl::FromUnixSeconds(1'700'000'000);
  call.ended = call.arrival + absl::Seconds(1);
  call.request = "{}";
  call.answer = "answer";
  return call;
}

TEST(CloudEvent, ACallIsTwoEventsInBinaryMode) {
  const auto events = ToCloudEvents(MakeCall(), "an-id", {.id = "eyes", .kubernetes_namespace = "shop"});
  ASSERT_EQ(events.size(), 2);
  for (const CloudEvent& event : events) {
    EXPECT_EQ(ValueOf(event, "ce-specversion"), "1.0");
    EXPECT_EQ(ValueOf(event, "ce-id"), "an-id");
    EXPECT_EQ(ValueOf(event, "ce-source"), "saccaded/eyes");
    EXPECT_EQ(ValueOf(event, "ce-inferenceservicename"), "cat");
    EXPECT_EQ(ValueOf(event, "ce-namespace"), "shop");
    EXPECT_EQ(ValueOf(event, "ce-component"), "predictor");
    EXPECT_EQ(ValueOf(event, "ce-endpoint"), "default");
    EXPECT_THAT(ValueOf(event, "ce-metadata"), HasSubstr("%22saccade-status%22:[%22OK%22]"));
  }
  EXPECT_EQ(ValueOf(events[0], "ce-type"), "org.kubeflow.serving.inference.request");
  EXPECT_EQ(ValueOf(events[0], "ce-time"), "2023-11-14T22:13:20.000000000Z");
  EXPECT_EQ(ValueOf(events[0], "content-type"), "application/json");
  EXPECT_EQ(events[0].body, "{}");
  EXPECT_EQ(ValueOf(events[1], "ce-type"), "org.kubeflow.serving.inference.response");
  EXPECT_EQ(ValueOf(events[1], "content-type"), "application/octet-stream");
  EXPECT_EQ(events[1].body, "answer");
}

TEST(CloudEvent, AFailedCallHasNoAnswer) {
  CapturedCall call = MakeCall();
  call.status = absl::InvalidArgumentError("no picture");
  EXPECT_EQ(ToCloudEvents(std::move(call), "id", {}).size(), 1);
}

TEST(CloudEvent, EmptyAttributesAreLeftOut) {
  const auto events = ToCloudEvents(MakeCall(), "id", {});
  for (const auto& [name, value] : events[0].headers) EXPECT_NE(name, "ce-namespace");
}

TEST(CloudEvent, NoPixelsMeansNoBodies) {
  for (const CapturedPixels pixels : {CapturedPixels::kHash, CapturedPixels::kNone}) {
    const auto events = ToCloudEvents(MakeCall(), "id", {.pixels = pixels});
    EXPECT_EQ(events[0].body, "");
    EXPECT_EQ(events[1].body, "");
    const bool hashed = ValueOf(events[0], "ce-metadata").find("saccade-sha256") != std::string::npos;
    EXPECT_EQ(hashed, pixels == CapturedPixels::kHash);
  }
}

TEST(CloudEvent, AttributesCannotEndTheirHeader) {
  EXPECT_EQ(EncodeAttribute("a b\"%\r\nx: y\xc3\xa4"), "a%20b%22%25%0D%0Ax:%20y%C3%A4");
  CapturedCall call = MakeCall();
  call.model = "cat\r\nauthorization: none";
  for (const CloudEvent& event : ToCloudEvents(std::move(call), "id", {})) {
    for (const auto& [name, value] : event.headers) EXPECT_THAT(value, Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace saccade::server
