#include "server/inference/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace saccade::server {
namespace {

TEST(ParametersTest, PriorityAndTimeout) {
  TensorCall call;
  ASSERT_TRUE(ApplyParameter("timeout", int64_t{5000}, call).ok());
  ASSERT_TRUE(ApplyParameter("priority", uint64_t{2}, call).ok());
  ASSERT_TRUE(ApplyParameter("my_own", std::string_view("ignored"), call).ok());
  EXPECT_EQ(call.timeout, absl::Milliseconds(5));
  EXPECT_EQ(call.deadline, absl::InfiniteFuture()) << "the timeout is for the queue alone";
  EXPECT_EQ(call.priority, -2);
  ASSERT_TRUE(ApplyParameter("timeout", int64_t{-1}, call).ok());
  EXPECT_EQ(call.timeout, absl::Milliseconds(5)) << "0 and less set none";
  ASSERT_TRUE(ApplyParameter("priority", std::numeric_limits<uint64_t>::max(), call).ok());
  EXPECT_EQ(call.priority, -std::numeric_limits<int>::max());
}

TEST(ParametersTest, WhatIsNoIntegerIsRefused) {
  TensorCall call;
  for (const Parameter& value : {Parameter(1.5), Parameter(true), Parameter(std::string_view("1"))}) {
    EXPECT_EQ(ApplyParameter("timeout", value, call).code(), absl::StatusCode::kInvalidArgument);
  }
  WantedOutput output;
  EXPECT_EQ(ApplyParameter("classification", std::string_view("3"), output).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ApplyParameter("classification", int64_t{3}, output).ok());
  EXPECT_EQ(output.classes, 3);
}

TEST(ParametersTest, WhereBytesLieInSharedMemory) {
  std::optional<SharedRange> range;
  ASSERT_TRUE(ApplyParameter("my_own", true, range).ok());
  EXPECT_FALSE(range);
  EXPECT_TRUE(CheckParameters(range).ok());
  ASSERT_TRUE(ApplyParameter("shared_memory_offset", int64_t{8}, range).ok());
  EXPECT_EQ(CheckParameters(range).code(), absl::StatusCode::kInvalidArgument) << "no region";
  ASSERT_TRUE(ApplyParameter("shared_memory_region", std::string_view("r"), range).ok());
  EXPECT_EQ(CheckParameters(range).code(), absl::StatusCode::kInvalidArgument) << "no size";
  ASSERT_TRUE(ApplyParameter("shared_memory_byte_size", int64_t{4}, range).ok());
  EXPECT_TRUE(CheckParameters(range).ok());
  EXPECT_EQ(range->region, "r");
  EXPECT_EQ(range->offset, 8u);
  EXPECT_EQ(range->size, 4u);
  for (const char* name : {"shared_memory_offset", "shared_memory_byte_size"}) {
    for (const Parameter& value :
         {Parameter(int64_t{-1}), Parameter(1.0), Parameter(std::string_view("1"))}) {
      EXPECT_EQ(ApplyParameter(name, value, range).code(), absl::StatusCode::kInvalidArgument);
    }
  }
  EXPECT_EQ(ApplyParameter("shared_memory_region", int64_t{1}, range).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ParametersTest, AnOutputIsNamedOnce) {
  EXPECT_TRUE(CheckNamedOnce({}).ok());
  EXPECT_TRUE(CheckNamedOnce({{.name = "a"}, {.name = "b"}}).ok());
  const absl::Status twice = CheckNamedOnce({{.name = "a"}, {.name = "b"}, {.name = "a", .classes = 5}});
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.message()), ::testing::HasSubstr("'a' is asked for more than once"));
}

TEST(ParametersTest, SequencesAreNotServed) {
  TensorCall call;
  for (const char* name : {"sequence_id", "sequence_start", "sequence_end"}) {
    for (const Parameter& some : {Parameter(int64_t{1}), Parameter(int64_t{-1}), Parameter(true),
                                  Parameter(std::string_view("a")), Parameter(1.0)}) {
      EXPECT_EQ(ApplyParameter(name, some, call).code(), absl::StatusCode::kUnimplemented) << name;
    }
    for (const Parameter& none :
         {Parameter(int64_t{0}), Parameter(uint64_t{0}), Parameter(false), Parameter(std::string_view())}) {
      EXPECT_TRUE(ApplyParameter(name, none, call).ok()) << name;
    }
  }
}

}  // namespace
}  // namespace saccade::server
