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
          {"unet", {1, 1, {}, 0, "bf16", "bf16 changes 0 % of the\n answers", 17}}};
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
  EXPECT_EQ(first.precision, "");
  const MeasuredKind& second = kinds->at("unet");
  EXPECT_EQ(second.precision, "bf16");
  EXPECT_EQ(second.precision_reason, "bf16 changes 0 % of the\n answers");
  EXPECT_EQ(second.last_use, 17);
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
  EXPECT_THAT(changed("threads 2", "threads 0"), HasSubstr("expected threads N"));
  EXPECT_THAT(changed("threads 1", "threads 0"), HasSubstr("line 5: expected threads N"));
  EXPECT_THAT(changed("threads 2", "threads 1025"), HasSubstr("expected threads"));
  EXPECT_THAT(changed("threads 2", "threads two"), HasSubstr("expected threads"));
  EXPECT_THAT(changed("instances 3", "instances 0"), HasSubstr("expected instances"));
  EXPECT_THAT(changed("bytes 1234", "bytes -1"), HasSubstr("expected bytes"));
  EXPECT_THAT(changed("bytes 1234", "bytes 99999999999999999999"), HasSubstr("expected bytes"));
  EXPECT_THAT(changed("pass -7 8 9500", "pass -7 0 9500"), HasSubstr("expected pass"));
  EXPECT_THAT(changed("pass -7 8 9500", "pass -7 8 0"), HasSubstr("expected pass"));
  EXPECT_THAT(changed("pass -7 8 9500", "pass -7 8"), HasSubstr("expected pass"));
  EXPECT_THAT(changed("use 17", "use -1"), HasSubstr("expected use"));
  EXPECT_THAT(changed("precision bf16", "precision "), HasSubstr("expected precision"));
  EXPECT_THAT(changed("precision bf16", "precision of_a_name_that_is_too_long"),
              HasSubstr("expected precision"));
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

std::string NameOfProgram(int number) { return absl::StrCat(std::string(300, 'p'), number); }

// A described program has passes of several sizes of pictures, each with several sizes of batches.
TEST(MeasuredKindsTextTest, AThousandProgramsAreRemembered) {
  Kinds kinds;
  for (int i = 0; i < 1000; ++i) {
    MeasuredKind& kind = kinds[NameOfProgram(i)];
    for (int64_t pass = 0; pass < 100; ++pass) kind.passes.push_back({pass << 40, 8, absl::Seconds(1)});
  }
  const auto read = ReadKinds(WriteKinds(Here(), kinds), Here());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), 1000);
}

TEST(MeasuredKindsTextTest, KindsThatWereUsedLastAreKept) {
  Kinds kinds;
  for (size_t i = 0; i < kMaxKinds + 100; ++i) kinds[absl::StrCat("k", i)].last_use = static_cast<int64_t>(i);
  const auto many = ReadKinds(WriteKinds(Here(), kinds), Here());
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(many->size(), kMaxKinds);
  EXPECT_EQ(many->count("k99"), 0);
  EXPECT_EQ(many->count("k100"), 1);
  // Where the text has no room for all, too.
  for (auto& [name, kind] : kinds) kind.passes.resize(200, {0, 1, absl::Seconds(1)});
  const auto large = ReadKinds(WriteKinds(Here(), kinds), Here());
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_LT(large->size(), kMaxKinds);
  EXPECT_EQ(large->count(absl::StrCat("k", kMaxKinds + 99)), 1);
  EXPECT_EQ(large->count("k100"), 0);
}

TEST(MeasuredKindsTextTest, ATextOfTooManyKindsIsDamaged) {
  Kinds kinds;
  for (size_t i = 0; i < kMaxKinds; ++i) kinds[absl::StrCat("k", i)] = {};
  std::string text = WriteKinds(Here(), kinds);
  ASSERT_TRUE(ReadKinds(text, Here()).ok());
  const std::string end = absl::StrCat("end ", kMaxKinds, "\n");
  text.resize(text.size() - end.size());
  absl::StrAppend(&text, "kind more\nthreads 1\ninstances 1\nbytes 0\nuse 0\nend ", kMaxKinds + 1, "\n");
  EXPECT_THAT(Error(text), HasSubstr("expected at most"));
}

}  // namespace
}  // namespace saccade::server
