#include "server/capture/record_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <nlohmann/json.hpp>

#include "server/core/sha256.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

CapturedCall MakeCall() {
  CapturedCall call;
  call.transport = "http";
  call.target = "/v1/predict/cat?top_k=1";
  call.headers = {{"content-type", "image/jpeg"}};
  call.model = "cat";
  call.arrival = absl::FromUnixSeconds(1'700'000'000) + absl::Nanoseconds(5);
  call.ended = call.arrival + absl::Milliseconds(7);
  call.http_status = 200;
  call.served.version = 3;
  call.served.identity = std::make_shared<const ModelIdentity>(ModelIdentity{"abc", "fp32", "avx512"});
  call.request = "pixels of a cat";
  call.answer = "it is a cat";
  call.request_bytes = 15;
  call.answer_bytes = 11;
  return call;
}

uint32_t Number(const std::string& bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number |= uint32_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return number;
}

// The record in the frame, after checking what surrounds it.
std::string Unpack(const std::string& frame) {
  EXPECT_EQ(Number(frame, 0), frame.size() - kFrameHead);
  const std::string packed = frame.substr(kFrameHead);
  EXPECT_EQ(Number(frame, 4), crc32(0, reinterpret_cast<const Bytef*>(packed.data()), packed.size()));
  std::string record(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  EXPECT_EQ(ZSTD_decompress(record.data(), record.size(), packed.data(), packed.size()), record.size());
  return record;
}

TEST(RecordFormat, AFrameHoldsTheCall) {
  const std::string record = Unpack(MakeFrame(MakeCall(), CapturedPixels::kFull, "1.2"));
  const uint32_t length = Number(record, 0);
  const Json json = Json::parse(record.substr(4, length));
  EXPECT_EQ(record.substr(4 + length), "pixels of a catit is a cat");
  EXPECT_EQ(json["arrival_ns"], 1'700'000'000'000'000'005);
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.000000005Z");
  EXPECT_EQ(json["target"], "/v1/predict/cat?top_k=1");
  EXPECT_EQ(json["headers"]["content-type"], "image/jpeg");
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["weights_sha256"], "abc");
  EXPECT_EQ(json["precision"], "fp32");
  EXPECT_EQ(json["instruction_set"], "avx512");
  EXPECT_EQ(json["build"], "1.2");
  EXPECT_EQ(json["status"], "OK");
  EXPECT_EQ(json["timings_us"]["total"], 7000);
  EXPECT_EQ(json["request_bytes"], 15);
  EXPECT_EQ(json["answer_bytes"], 11);
}

TEST(RecordFormat, HashesReplaceTheBodies) {
  const std::string record = Unpack(MakeFrame(MakeCall(), CapturedPixels::kHash, "1.2"));
  EXPECT_THAT(record, Not(HasSubstr("pixels of")));
  EXPECT_THAT(record, Not(HasSubstr("it is a cat")));
  const Json json = Json::parse(record.substr(4));
  EXPECT_EQ(json["request_sha256"], Sha256Hex("pixels of a cat"));
  EXPECT_EQ(json["answer_sha256"], Sha256Hex("it is a cat"));
  EXPECT_EQ(json["request_bytes"], 15);
}

TEST(RecordFormat, SizesAloneRemainOfTheBodies) {
  CapturedCall call = MakeCall();
  const std::string record = Unpack(MakeFrame(call, CapturedPixels::kNone, "1.2"));
  EXPECT_THAT(record, Not(HasSubstr("cat is")));
  EXPECT_THAT(record, Not(HasSubstr("pixels of")));
  EXPECT_THAT(record, Not(HasSubstr("sha256\":\"" + Sha256Hex(call.request))));
  EXPECT_EQ(Json::parse(record.substr(4))["request_bytes"], 15);
}

TEST(RecordFormat, Sha256IsTheStandards) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(RecordFormat, NamesThatAreNoUtf8DoNotBreakTheJson) {
  CapturedCall call = MakeCall();
  call.model = "\xff\xfe";
  EXPECT_TRUE(Json::accept(DescribeCall(call, CapturedPixels::kFull, "1.2")));
}

}  // namespace
}  // namespace saccade::server
