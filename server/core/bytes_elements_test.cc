#include "server/core/bytes_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Flat(const BytePieces& bytes) {
  std::string flat(bytes.size(), ' ');
  bytes.CopyTo(flat.data());
  return flat;
}

std::string Joined(const std::vector<std::string_view>& elements) { return Flat(JoinBytes(elements)); }

TEST(BytesElementsTest, JoinedWithTheirLengths) {
  EXPECT_EQ(Joined({"a", "", "bcd"}), std::string("\1\0\0\0a\0\0\0\0\3\0\0\0bcd", 16));
}

TEST(BytesElementsTest, SplitWhereTheyLie) {
  const std::string whole = Joined({"one", "", "three"});
  const auto split = SplitBytes(BytePieces(whole), 3);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(split->elements, ElementsAre("one", "", "three"));
  EXPECT_EQ(split->owner, nullptr);
  EXPECT_EQ(split->elements[0].data(), whole.data() + 4);
}

TEST(BytesElementsTest, PutTogetherFromPieces) {
  const std::string whole = Joined({"one", "two", "three"});
  for (size_t size = 1; size < whole.size(); ++size) {
    BytePieces pieces;
    std::vector<std::string> parts;
    for (size_t at = 0; at < whole.size(); at += size) parts.push_back(whole.substr(at, size));
    for (const std::string& part : parts) pieces.Add(part);
    const auto split = SplitBytes(pieces, 3);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_THAT(split->elements, ElementsAre("one", "two", "three")) << size;
  }
}

TEST(BytesElementsTest, NothingIsNoElement) {
  const auto split = SplitBytes(BytePieces(), 0);
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->elements, IsEmpty());
}

void ExpectRefused(std::string_view bytes, int64_t expected, const char* hint) {
  const absl::Status status = SplitBytes(BytePieces(bytes), expected).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(hint));
}

TEST(BytesElementsTest, WhatIsNotTheShapesIsRefused) {
  ExpectRefused("", 1, "fewer");
  ExpectRefused("abc", 1, "4-byte length");
  ExpectRefused(Joined({"12345"}).substr(0, 7), 1, "5 bytes, but only 3 bytes are left");
  ExpectRefused(Joined({"a", "b"}), 1, "more");
  ExpectRefused(std::string_view("\xff\xff\xff\xff", 4), 1, "4294967295 bytes, but only 0 bytes are left");
}

}  // namespace
}  // namespace saccade::server
