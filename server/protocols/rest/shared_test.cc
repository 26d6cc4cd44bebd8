// Tests of tensors in shared memory in requests over HTTP.
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/protocols/rest/answer.h"
#include "server/protocols/rest/error.h"
#include "server/protocols/rest/request.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMax = 1000;

class RestSharedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(::testing::TempDir() + "/rest_shared") << "xxxxxxxxabcd";
    ASSERT_TRUE(memory_.Register({.name = "r", .key = "/rest_shared", .size = 12}).ok());
  }

  absl::StatusOr<RestCall> Read(const std::string& members, const std::string& more = "") {
    const std::string json =
        absl::StrCat(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],)", members, "}", more, "]}");
    return ReadRestRequest({.bytes = json, .owner = nullptr, .json_length = std::nullopt}, memory_,
                           {.max_bytes = kMax});
  }

  std::string Why(const absl::StatusOr<RestCall>& read, absl::StatusCode code) {
    if (read.ok()) return "it was taken";
    EXPECT_EQ(read.status().code(), code) << read.status();
    return std::string(read.status().message());
  }

  SharedMemory memory_{{.allowed = true, .max_tensor_bytes = 10, .folder = ::testing::TempDir()}};
};

constexpr char kRange[] =
    R"("parameters":{"shared_memory_region":"r","shared_memory_byte_size":4,"shared_memory_offset":8})";
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(RestSharedTest, InputsAreCopiedFromThere) {
  const auto read = Read(kRange);
  ASSERT_TRUE(read.ok()) << read.status();
  std::string bytes(4, ' ');
  ASSERT_EQ(read->call.inputs.at(0).data.size(), 4u);
  read->call.inputs[0].data.CopyTo(bytes.data());
  EXPECT_EQ(bytes, "abcd");
}

// A network thread must not copy a region because of a small body.
TEST_F(RestSharedTest, ABodyThatNamesSharedMemoryIsNotSmall) {
  const auto bytes = [](const std::string& json, const std::string& tensors = "") {
    return RestBytesToRead({{kJsonLengthHeader, absl::StrCat(json.size())}}, json + tensors);
  };
  EXPECT_EQ(bytes(absl::StrCat("{", kRange, "}")), SIZE_MAX);
  EXPECT_EQ(bytes(R"({"shared\u005fmemory_region":"r"})"), SIZE_MAX) << "escaped";
  EXPECT_EQ(bytes(std::string(5000, ' ')), SIZE_MAX) << "too long to be searched";
  EXPECT_EQ(bytes(R"({"datatype":"FP32"})", "abcd"), 19u);
  EXPECT_EQ(bytes(R"({"datatype":"BYTES"})", "abcd"), 24u);
}

TEST_F(RestSharedTest, InputsAreChargedAsLongAsTheyExist) {
  FakeLedger ledger;
  const std::string json =
      absl::StrCat(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],)", kRange, "}]}");
  const RestBody body{.bytes = json, .owner = nullptr, .json_length = std::nullopt};
  const RestLimits limits{.max_bytes = kMax, .ledger = &ledger};
  {
    auto read = ReadRestRequest(body, memory_, limits);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->call.charged_bytes, 4);
    const int64_t charged = ledger.charged();
    read->call.inputs.clear();
    EXPECT_EQ(ledger.charged(), charged - 4);
  }
  EXPECT_EQ(ledger.charged(), 0);
}

TEST_F(RestSharedTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(Why(Read(absl::StrCat(kRange, R"(,"data":[1])")), kInvalid),
              HasSubstr("input 'x': has both data and shared_memory_region"));
  EXPECT_THAT(Why(Read(R"("parameters":{"shared_memory_region":"r"})"), kInvalid),
              HasSubstr("shared_memory_byte_size: is missing"));
  EXPECT_THAT(Why(Read(R"("parameters":{"shared_memory_region":7,"shared_memory_byte_size":4})"), kInvalid),
              HasSubstr("the name of a registered region"));
  EXPECT_THAT(Why(Read(R"("parameters":{"shared_memory_region":"r","shared_memory_byte_size":3})"), kInvalid),
              HasSubstr("input 'x'"));
  EXPECT_THAT(
      Why(Read(R"("parameters":{"shared_memory_region":"r","shared_memory_byte_size":13})"), kInvalid),
      HasSubstr("exceeds shared memory region"));
  EXPECT_THAT(Why(Read(R"("parameters":{"shared_memory_region":"q","shared_memory_byte_size":4})"),
                  absl::StatusCode::kNotFound),
              HasSubstr("input 'x'"));
  const std::string again = absl::StrCat(R"(,{"name":"y","datatype":"FP32","shape":[1],)", kRange, "}");
  EXPECT_TRUE(Read(kRange, again).ok());
  EXPECT_THAT(Why(Read(kRange, again + again), kInvalid),
              HasSubstr("12 bytes, more than --max-message-bytes"));
}

TEST_F(RestSharedTest, ATableOfRegionsThatIsFullIsABoundThatWasReached) {
  RetryJitter jitter(1);
  SharedMemory small(
      {.allowed = true, .max_regions = 2, .max_regions_of_token = 1, .folder = ::testing::TempDir()});
  const auto add = [&](const std::string& name, const std::string& client) {
    return small.Register({.name = name, .key = "/rest_shared", .size = 12}, client);
  };
  ASSERT_TRUE(add("a", "token:1").ok());
  const HttpResponse of_token = ToHttp(add("b", "token:1"), &jitter);
  EXPECT_EQ(of_token.status, 429);
  EXPECT_THAT(of_token.body, HasSubstr("the token has 1 shared memory regions, the maximum"));
  ASSERT_TRUE(add("b", "").ok());
  const HttpResponse of_all = ToHttp(add("c", ""), &jitter);
  EXPECT_EQ(of_all.status, 429);
  EXPECT_THAT(of_all.body, HasSubstr("2 shared memory regions are registered, the maximum"));
  ASSERT_EQ(of_all.headers.size(), 1U);
  EXPECT_EQ(of_all.headers[0].first, "Retry-After");
}

TEST_F(RestSharedTest, OutputsAreWhereTheyWereWanted) {
  const std::string json = R"({"inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":false,
    "shared_memory_region":"r","shared_memory_byte_size":8,"shared_memory_offset":4}}]})";
  const auto read = ReadRestRequest({.bytes = json, .owner = nullptr, .json_length = std::nullopt}, memory_,
                                    {.max_bytes = kMax});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(read->call.outputs.at(0).shared);
  EXPECT_EQ(read->call.outputs[0].shared->offset, 4u);
  const auto answer = ToRestAnswer({.model = "m",
                                    .version = 1,
                                    .outputs = {{.name = "y",
                                                 .type = DataType::kFp32,
                                                 .shape = {2},
                                                 .data = {},
                                                 .shared = SharedRange{"r", 4, 8}}}},
                                   "", read->form, kMax);
  ASSERT_TRUE(answer.ok()) << answer.status();
  // Like Triton's response: its client would expect binary data if there were parameters.
  EXPECT_EQ(nlohmann::json::parse(answer->body)["outputs"],
            nlohmann::json::parse(R"([{"name": "y", "datatype": "FP32", "shape": [2]}])"));
  EXPECT_TRUE(answer->attached.empty());
}

TEST_F(RestSharedTest, AClassifiedOutputIsNotShared) {
  const std::string json = R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":2,
    "shared_memory_region":"r","shared_memory_byte_size":8}}]})";
  const auto read = ReadRestRequest({.bytes = json, .owner = nullptr, .json_length = std::nullopt}, memory_,
                                    {.max_bytes = kMax});
  EXPECT_THAT(Why(read, kInvalid), HasSubstr("has both shared_memory_region and classification"));
}

}  // namespace
}  // namespace saccade::server
