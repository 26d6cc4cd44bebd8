#include "server/tracing/trace_context.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr char kGood[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::optional<SpanContext> Read(absl::string_view traceparent,
                                const std::vector<absl::string_view>& states = {}) {
  return ReadTraceContext({traceparent}, states);
}

std::string StateOf(const std::vector<absl::string_view>& states) {
  const auto context = Read(kGood, states);
  return context ? context->state : "no context";
}

TEST(TraceContext, IsReadFromItsHeader) {
  const auto context = Read(kGood);
  ASSERT_TRUE(context);
  EXPECT_EQ(ToHex(context->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(ToHex(context->span), "b7ad6b7169203331");
  EXPECT_TRUE(context->sampled);
}

TEST(TraceContext, OfItsFlagsOneIsKnown) {
  EXPECT_FALSE(Read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
  EXPECT_FALSE(Read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe")->sampled);
  EXPECT_TRUE(Read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff")->sampled);
}

TEST(TraceContext, OfALaterVersionTheSameFieldsAreRead) {
  EXPECT_TRUE(Read("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
  EXPECT_TRUE(Read("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-brings"));
  EXPECT_FALSE(Read("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what-the-future-brings"));
}

TEST(TraceContext, MalformedIsNone) {
  for (const char* const bad : {
           "",
           "00",
           "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319cc-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-00",
           "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
           "00-0af7651916cd43dd8448eb211c80319c b7ad6b7169203331-01",
       }) {
    EXPECT_FALSE(Read(bad)) << bad;
  }
}

TEST(TraceContext, TwoOfThemAreNone) {
  EXPECT_FALSE(ReadTraceContext({kGood, kGood}, {}));
  EXPECT_FALSE(ReadTraceContext({}, {"a=1"}));
}

TEST(TraceContext, HandsTracestateOn) {
  EXPECT_EQ(StateOf({"congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"}), "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
  EXPECT_EQ(StateOf({"a=1 , b=2", "", "t0/x@sys=3,,"}), "a=1,b=2,t0/x@sys=3");
  EXPECT_EQ(StateOf({"1tenant@sys=x"}), "1tenant@sys=x");
}

TEST(TraceContext, LeavesOutABadTracestateAlone) {
  for (const char* const bad : {"a", "A=1", "=1", "a=", "a=1=2", "1a=x", "a=1,a=2", "a=x\x01", "a@=1", "@b=1",
                                "a b=1", "a=\xc3\xa9", "a@b@c=1"}) {
    EXPECT_EQ(StateOf({bad}), "") << bad;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) absl::StrAppend(&many, "k", i, "=v,");
  EXPECT_EQ(StateOf({many}), "");
  const std::string longer =
      absl::StrCat("a=", std::string(250, 'v'), ",b=", std::string(250, 'v'), ",c=", std::string(9, 'v'));
  EXPECT_EQ(StateOf({longer}), "");
  EXPECT_EQ(StateOf({absl::StrCat("a=", std::string(257, 'v'))}), "");
}

TEST(TraceContext, IdsAreBytesFromTheHighestOn) {
  EXPECT_EQ(ToBytes(TraceId{0x0102030405060708, 0x090a0b0c0d0e0f10}),
            "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10");
  EXPECT_EQ(ToHex(SpanId{0xf}), "000000000000000f");
  EXPECT_FALSE(NewTraceId() == NewTraceId());
  EXPECT_NE(NewSpanId(), NewSpanId());
}

}  // namespace
}  // namespace saccade::server
