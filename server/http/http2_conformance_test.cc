// What RFC 9113 demands of a server whose client sends malformed or out-of-order frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/http/testing/http2_fixture.h"

namespace saccade::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// What must become of a connection that sends malformed or out-of-order frames, and where RFC 9113 says so.
struct Row {
  const char* name;
  std::string bytes;
  // kEitherError: a stream's error may be treated as the connection's (RFC 9113, 5.4).
  enum Kind { kConnectionError, kStreamError, kEitherError, kIgnored, kAnswered } kind;
  // The error code of the connection or the stream; the status if the request is answered.
  uint32_t code = 0;
  // Error codes that the RFC also allows.
  std::set<uint32_t> or_codes = {};
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

std::vector<Row> Rows() {
  const std::string headers = HeaderBlock(GetFields());
  const uint8_t whole = kEndHeaders | kEndStream;
  return {
      // 6.1 DATA
      {"DataOnStream0", DataFrame(0, "x", false), Row::kConnectionError, kProtocolError},
      {"DataOnIdleStream", DataFrame(1, "x", false), Row::kConnectionError, kProtocolError, {kStreamClosed}},
      {"DataAfterEnd", Get(1, "/wait") + DataFrame(1, "x", true), Row::kEitherError, kStreamClosed},
      {"PaddingLongerThanData", Post(1) + BytesOf({kData, kPadded, 1, std::string("\x09") + "abc"}),
       Row::kConnectionError, kProtocolError},
      {"PaddedWithoutLength",
       Post(1) + BytesOf({kData, kPadded, 1, ""}),
       Row::kConnectionError,
       kFrameSizeError,
       {kProtocolError}},
      {"PaddedData",
       Post(1) + BytesOf({kData, kPadded | kEndStream, 1, std::string("\x02") + "abc" + "\0\0"}),
       Row::kAnswered, 200},
      // 6.2 HEADERS
      {"HeadersOnStream0", HeadersFrame(0, GetFields(), whole), Row::kConnectionError, kProtocolError},
      {"HeadersOnEvenStream", Get(2), Row::kConnectionError, kProtocolError},
      // nghttp2 cannot tell it from the trailers of a stream that we have ended, which have to be ignored.
      {"StreamNumberGoesBack", Get(5) + Get(3), Row::kIgnored},
      {"HeadersPaddingTooLong",
       BytesOf({kHeaders, static_cast<uint8_t>(whole | kPadded), 1, "\xff" + headers}), Row::kConnectionError,
       kProtocolError},
      {"HeadersPriorityCutOff",
       BytesOf({kHeaders, static_cast<uint8_t>(whole | kPriorityFlag), 1, "ab"}),
       Row::kConnectionError,
       kFrameSizeError,
       {kProtocolError}},
      {"HeadersThenOtherStream", HeadersFrame(1, GetFields(), kEndStream) + Get(3), Row::kConnectionError,
       kProtocolError},
      {"HeadersThenData", HeadersFrame(1, GetFields(), kEndStream) + DataFrame(1, "x", true),
       Row::kConnectionError, kProtocolError},
      {"HeadersWithPriority",
       BytesOf({kHeaders, static_cast<uint8_t>(whole | kPriorityFlag), 1, std::string(5, '\0') + headers}),
       Row::kAnswered, 200},
      {"TrailersWithoutEnd", Post(1) + HeadersFrame(1, {{"x", "y"}}, kEndHeaders), Row::kStreamError,
       kProtocolError},
      {"TrailersEndTheRequest", Post(1) + DataFrame(1, "abc", false) + HeadersFrame(1, {{"x", "y"}}, whole),
       Row::kAnswered, 200},
      {"HeadersAfterEnd",
       Get(1, "/wait") + HeadersFrame(1, GetFields(), whole),
       Row::kEitherError,
       kStreamClosed,
       {kProtocolError}},
      // 6.3 PRIORITY
      {"PriorityOnStream0", BytesOf({kPriority, 0, 0, std::string(5, '\0')}), Row::kConnectionError,
       kProtocolError},
      {"PriorityOfWrongSize", BytesOf({kPriority, 0, 1, "abc"}), Row::kConnectionError, kFrameSizeError},
      {"PriorityOnIdleStream", BytesOf({kPriority, 0, 7, std::string(5, '\0')}), Row::kIgnored},
      // 6.4 RST_STREAM
      {"ResetOnStream0", ResetFrame(0, kCancel), Row::kConnectionError, kProtocolError},
      {"ResetOnIdleStream", ResetFrame(1, kCancel), Row::kConnectionError, kProtocolError},
      {"ResetOfWrongSize", Get(1, "/wait") + BytesOf({kRstStream, 0, 1, "abc"}), Row::kConnectionError,
       kFrameSizeError},
      {"ResetOfFinishedStream", Get(1) + ResetFrame(1, kCancel), Row::kIgnored},
      // 6.5 SETTINGS
      {"SettingsOnStream1", BytesOf({kSettings, 0, 1, ""}), Row::kConnectionError, kProtocolError},
      {"SettingsOfWrongSize", BytesOf({kSettings, 0, 0, "abcde"}), Row::kConnectionError, kFrameSizeError},
      {"SettingsAckWithPayload", BytesOf({kSettings, kAck, 0, Setting(1, 1)}), Row::kConnectionError,
       kFrameSizeError},
      {"SettingsPushNotBoolean", SettingsFrame(Setting(2, 2)), Row::kConnectionError, kProtocolError},
      {"SettingsWindowTooLarge", SettingsFrame(Setting(4, 0x80000000)), Row::kConnectionError,
       kFlowControlError},
      {"SettingsFrameTooSmall", SettingsFrame(Setting(5, 16383)), Row::kConnectionError, kProtocolError},
      {"SettingsFrameTooLarge", SettingsFrame(Setting(5, 1 << 24)), Row::kConnectionError, kProtocolError},
      {"SettingsUnknown", SettingsFrame(Setting(0xfefe, 1)), Row::kIgnored},
      // 6.6 PUSH_PROMISE
      {"PushPromise", BytesOf({kPushPromise, kEndHeaders, 1, BigEndian(2, 4) + headers}),
       Row::kConnectionError, kProtocolError},
      // 6.7 PING
      {"PingOnStream1", BytesOf({kPing, 0, 1, kPong}), Row::kConnectionError, kProtocolError},
      {"PingOfWrongSize", BytesOf({kPing, 0, 0, "abc"}), Row::kConnectionError, kFrameSizeError},
      {"PingAckUnasked", BytesOf({kPing, kAck, 0, kPong}), Row::kIgnored},
      // 6.8 GOAWAY
      {"GoawayOnStream1", BytesOf({kGoaway, 0, 1, std::string(8, '\0')}), Row::kConnectionError,
       kProtocolError},
      {"GoawayOfWrongSize", BytesOf({kGoaway, 0, 0, "abc"}), Row::kConnectionError, kFrameSizeError},
      // 6.9 WINDOW_UPDATE
      {"WindowOfZero", WindowFrame(0, 0), Row::kConnectionError, kProtocolError},
      {"WindowOfZeroOnStream", Get(1, "/wait") + WindowFrame(1, 0), Row::kEitherError, kProtocolError},
      {"WindowOverflow", WindowFrame(0, 0x7fffffff), Row::kConnectionError, kFlowControlError},
      {"WindowOverflowOnStream", Get(1, "/wait") + WindowFrame(1, 0x7fffffff), Row::kStreamError,
       kFlowControlError},
      {"WindowOfWrongSize", BytesOf({kWindowUpdate, 0, 0, "abc"}), Row::kConnectionError, kFrameSizeError},
      {"WindowOnIdleStream", WindowFrame(1, 1), Row::kConnectionError, kProtocolError},
      // 6.10 CONTINUATION
      {"ContinuationAlone", BytesOf({kContinuation, kEndHeaders, 1, headers}), Row::kConnectionError,
       kProtocolError},
      {"ContinuationOnOtherStream",
       HeadersFrame(1, GetFields(), kEndStream) + BytesOf({kContinuation, kEndHeaders, 3, ""}),
       Row::kConnectionError, kProtocolError},
      {"HeadersInTwoFrames",
       BytesOf({kHeaders, kEndStream, 1, headers.substr(0, 9)}) +
           BytesOf({kContinuation, kEndHeaders, 1, headers.substr(9)}),
       Row::kAnswered, 200},
      // 4.2, 4.3, 5.1, 5.5
      {"FrameTooLarge",
       Post(1) + BytesOf({kData, 0, 1, std::string((64 << 10) + 1, 'x')}),
       Row::kConnectionError,
       kFrameSizeError,
       {kFlowControlError}},
      {"HpackIndexOutOfRange", BytesOf({kHeaders, whole, 1, "\xff\xff\xff\x7f"}), Row::kConnectionError,
       kCompressionError},
      {"HpackCutOff", BytesOf({kHeaders, whole, 1, headers.substr(0, headers.size() - 3)}),
       Row::kConnectionError, kCompressionError},
      {"HpackTableTooLarge", BytesOf({kHeaders, whole, 1, "\x3f\xff\xff\xff\x07" + headers}),
       Row::kConnectionError, kCompressionError},
      {"UnknownFrameType", BytesOf({0xef, 0xff, 1, "anything"}), Row::kIgnored},
      // 8.1, 8.2, 8.3
      {"UpperCaseName", HeadersFrame(1, With(GetFields(), {{"Accept", "x"}}), whole), Row::kStreamError,
       kProtocolError},
      {"ConnectionHeader", HeadersFrame(1, With(GetFields(), {{"connection", "close"}}), whole),
       Row::kStreamError, kProtocolError},
      {"TransferEncoding", HeadersFrame(1, With(GetFields(), {{"transfer-encoding", "chunked"}}), whole),
       Row::kStreamError, kProtocolError},
      {"TeOtherThanTrailers", HeadersFrame(1, With(GetFields(), {{"te", "gzip"}}), whole), Row::kStreamError,
       kProtocolError},
      {"TeTrailers", HeadersFrame(1, With(GetFields(), {{"te", "trailers"}}), whole), Row::kAnswered, 200},
      {"PseudoAfterField",
       HeadersFrame(1, {{":method", "GET"}, {":scheme", "http"}, {"a", "b"}, {":path", "/"}}, whole),
       Row::kStreamError, kProtocolError},
      {"UnknownPseudo", HeadersFrame(1, With(GetFields(), {{":other", "x"}}), whole), Row::kStreamError,
       kProtocolError},
      {"StatusInRequest", HeadersFrame(1, With(GetFields(), {{":status", "200"}}), whole), Row::kStreamError,
       kProtocolError},
      {"MethodTwice", HeadersFrame(1, With(GetFields(), {{":method", "GET"}}), whole), Row::kStreamError,
       kProtocolError},
      {"NoPath", HeadersFrame(1, {{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}}, whole),
       Row::kStreamError, kProtocolError},
      {"EmptyPath", HeadersFrame(1, {{":method", "GET"}, {":scheme", "http"}, {":path", ""}}, whole),
       Row::kStreamError, kProtocolError},
      {"NoScheme", HeadersFrame(1, {{":method", "GET"}, {":path", "/"}}, whole), Row::kStreamError,
       kProtocolError},
      {"LineEndInValue", HeadersFrame(1, With(GetFields(), {{"x", "a\r\nb: c"}}), whole), Row::kStreamError,
       kProtocolError},
      {"SpaceInName", HeadersFrame(1, With(GetFields(), {{"x y", "a"}}), whole), Row::kStreamError,
       kProtocolError},
      {"HostDiffers", HeadersFrame(1, With(GetFields(), {{"host", "elsewhere"}}), whole), Row::kAnswered,
       400},
      {"LengthTooLarge",
       HeadersFrame(1, With(PostFields(), {{"content-length", "5"}}), kEndHeaders) +
           DataFrame(1, "abc", true),
       Row::kStreamError, kProtocolError},
      {"LengthTooSmall",
       HeadersFrame(1, With(PostFields(), {{"content-length", "2"}}), kEndHeaders) +
           DataFrame(1, "abc", true),
       Row::kStreamError, kProtocolError},
      {"LengthTwice",
       HeadersFrame(1, With(PostFields(), {{"content-length", "3"}, {"content-length", "3"}}), kEndHeaders) +
           DataFrame(1, "abc", true),
       Row::kStreamError, kProtocolError},
      {"LengthNoNumber", HeadersFrame(1, With(PostFields(), {{"content-length", "x"}}), kEndHeaders),
       Row::kStreamError, kProtocolError},
  };
}

class Conformance : public Http2SessionTest, public ::testing::WithParamInterface<Row> {};

TEST_P(Conformance, AsTheRfcSays) {
  Open();
  pipe_->TakeOutput();
  const Row& row = GetParam();
  pipe_->Send(row.bytes + BytesOf({kPing, 0, 0, kPong}));
  const std::vector<Frame> frames = Answers();
  const auto allowed = [&row](uint32_t code) { return code == row.code || row.or_codes.count(code) > 0; };
  const auto pongs = OfType(frames, kPing);
  const bool gone = row.kind == Row::kEitherError && pipe_->lost();
  if (row.kind == Row::kConnectionError || gone) {
    const auto codes = GoawayCodes(frames);
    ASSERT_THAT(codes, SizeIs(1));
    EXPECT_TRUE(allowed(codes[0])) << codes[0];
    EXPECT_TRUE(pipe_->lost());
    EXPECT_THAT(pongs, IsEmpty());
    return;
  }
  EXPECT_THAT(GoawayCodes(frames), IsEmpty());
  EXPECT_FALSE(pipe_->lost());
  EXPECT_THAT(pongs, SizeIs(1));
  const auto resets = OfType(frames, kRstStream);
  if (row.kind == Row::kStreamError || row.kind == Row::kEitherError) {
    ASSERT_THAT(resets, SizeIs(1));
    EXPECT_TRUE(allowed(NumberAt(resets[0].payload, 0, 4))) << NumberAt(resets[0].payload, 0, 4);
  }
  if (row.kind == Row::kAnswered) {
    EXPECT_THAT(resets, IsEmpty());
    const auto heads = OfType(frames, kHeaders);
    ASSERT_FALSE(heads.empty());
    // Status 200 is index 8 of HPACK's static table, 400 is 12.
    EXPECT_EQ(static_cast<uint8_t>(heads[0].payload[0]), row.code == 200 ? 0x88 : 0x8c);
  }
}

INSTANTIATE_TEST_SUITE_P(Rfc9113, Conformance, ::testing::ValuesIn(Rows()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(Http2SessionTest, ABytewiseClientGetsTheSameAnswer) {
  pipe_ = std::make_unique<SessionPipe>(&loop_);
  pipe_->Open(MakeHttp2Session(pipe_.get(), &handler_, &limits_, &refusals_));
  const std::string bytes = std::string(kPreface) + SettingsFrame() + Post(1) + DataFrame(1, "hello", true);
  for (const char byte : bytes) pipe_->Send(std::string(1, byte));
  EXPECT_THAT(OfType(Answers(), kData), SizeIs(1));
  EXPECT_EQ(handler_.facts.answered, 1);
}

TEST_F(Http2SessionTest, AWrongPrefaceEndsTheConnection) {
  pipe_ = std::make_unique<SessionPipe>(&loop_);
  pipe_->Open(MakeHttp2Session(pipe_.get(), &handler_, &limits_, &refusals_));
  pipe_->Send("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.begun, 0);
}

}  // namespace
}  // namespace saccade::server
