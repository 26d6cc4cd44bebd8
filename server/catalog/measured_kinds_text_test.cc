#include "server/catalog/measured_kinds_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using Kinds = std::map<std::string, MeasuredKind>;

const MeasuredOn& Here() {
  static const auto* const here = new MeasuredOn{"a processor, avx512, 2 cores", "1.0"};
  return *here;
}

Kinds Two() {
  return {{"resnet\n8\nside=64\n\xff",
           {2, 3, {{0, 1, absl::Milliseconds(2)}, {-7, 8, absl::Microseconds(9.5)}}, 1234}},
          {"unet", {1, 1, {}, 0}}};
}

std::string Error(absl::string_view text) {
  const auto kinds = ReadKinds(text, Here());
  return kinds.ok() ? "none" : std::string(kinds.status().message());
}

TEST(MeasuredKindsTextTest, ReadsWhatItWrote) {
  const auto kinds = ReadKinds(WriteKinds(Here(), Two()), Here());
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  ASSERT_EQ(kinds->size(), 2);
  const MeasuredKind& first = kinds->at("resnet\n8\nside=64\n\xff");
  EXPECT_EQ(first.threads, 2);
  EXPECT_EQ(first.instances, 3);
  EXPECT_EQ(first.bytes, 1234);
  ASSERT_EQ(first.passes.size(), 2);
  EXPECT_EQ(first.passes[1].bucket, -7);
  EXPECT_EQ(first.passes[1].size, 8);
  EXPECT_EQ(first.passes[1].took, absl::Microseconds(9.5));
}

TEST(MeasuredKindsTextTest, OtherMachinesAndBuildsMeasuredSomethingElse) {
  const std::string text = WriteKinds(Here(), Two());
  EXPECT_EQ(ReadKinds(text, {"another", "1.0"}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadKinds(text, {Here().machine, "1.1"}).status().code(), absl::StatusCode::kFailedPrecondition);
}

// A text that was cut off anywhere is no measurement, also if a line is whole.
TEST(MeasuredKindsTextTest, NoPartOfATextIsRead) {
  const std::string text = WriteKinds(Here(), Two());
  // Without the last newline it is still whole.
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_FALSE(ReadKinds(text.substr(0, size), Here()).ok()) << size;
}

TEST(MeasuredKindsTextTest, WhatCannotHaveBeenMeasuredIsDamage) {
  const std::string text = WriteKinds(Here(), Two());
  const auto changed = [&](const char* from, const char* to) {
    const std::string other = absl::StrReplaceAll(text, {{from, to}});
    EXPECT_NE(other, text) << from;
    return Error(other);
  };
  EXPECT_THAT(changed("threads 2", "threads 0"), HasSubstr("line 5: expected threads N"));
  EXPECT_THAT(changed("threads 2", "threads 1025"), HasSubstr("expected threads"));
  EXPECT_THAT(changed("threads 2", "threads two"), HasSubstr("expected threads"));
  EXPECT_THAT(changed("instances 3", "instances 0"), HasSubstr("expected instances"));
  EXPECT_THAT(changed("bytes 1234", "bytes -1"), HasSubstr("expected bytes"));
  EXPECT_THAT(changed("bytes 1234", "bytes 99999999999999999999"), HasSubstr("expected bytes"));
  EXPECT_THAT(changed("pass -7 8 9500", "pass -7 0 9500"), HasSubstr("expected pass"));
  EXPECT_THAT(changed("pass -7 8 9500", "pass -7 8 0"), HasSubstr("expected pass"));
  EXPECT_THAT(changed("pass -7 8 9500", "pass -7 8"), HasSubstr("expected pass"));
  EXPECT_THAT(changed("end 2", "end 3"), HasSubstr("expected end 2"));
  EXPECT_THAT(changed("kind unet", "kind resnet\\n8\\nside=64\\n\\377"), HasSubstr("each kind once"));
  EXPECT_THAT(changed("kind unet", "kind \\q"), HasSubstr("kind NAME"));
  EXPECT_THAT(Error(std::string(kMaxKindsBytes + 1, 'x')), HasSubstr("at most"));
  EXPECT_THAT(Error(std::string("\0\0\0", 3)), HasSubstr("line 1"));
}

TEST(MeasuredKindsTextTest, TheTextIsBounded) {
  Kinds kinds;
  kinds[std::string(kMaxKindBytes + 1, 'k')] = {};
  kinds["many"].passes.resize(kMaxKindPasses + 1, {0, 1, absl::Seconds(1)});
  kinds["at once"].passes.push_back({0, 1, absl::ZeroDuration()});
  kinds["for ever"].passes.push_back({0, 1, absl::InfiniteDuration()});
  kinds["kept"] = {};
  const auto kept = ReadKinds(WriteKinds(Here(), kinds), Here());
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->size(), 1);
  for (int i = 0; i < 5000; ++i) kinds[absl::StrCat(std::string(2000, 'k'), i)] = {};
  const std::string text = WriteKinds(Here(), kinds);
  EXPECT_LE(text.size(), kMaxKindsBytes);
  EXPECT_TRUE(ReadKinds(text, Here()).ok());
}

}  // namespace
}  // namespace saccade::server
