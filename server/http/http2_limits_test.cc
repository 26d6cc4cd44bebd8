// Bounds on the number, the size and the rate of what an HTTP/2 client sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "server/http/testing/http2_fixture.h"

namespace saccade::server {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

TEST_F(Http2SessionTest, StreamsAreBoundedBeforeSettingsAreAcknowledged) {
  limits_.max_streams = 8;
  Open();
  pipe_->TakeOutput();
  std::string bytes;
  for (uint32_t i = 0; i < 20; ++i) bytes += Get(2 * i + 1, "/wait");
  pipe_->Send(bytes);
  EXPECT_EQ(handler_.facts.begun, 8);
  const auto resets = OfType(Answers(), kRstStream);
  ASSERT_THAT(resets, SizeIs(12));
  for (const Frame& reset : resets) EXPECT_EQ(NumberAt(reset.payload, 0, 4), kRefusedStream);
}

TEST_F(Http2SessionTest, OpeningRefusedStreamsForeverEndsTheConnection) {
  limits_.max_streams = 8;
  Open();
  pipe_->TakeOutput();
  std::string bytes;
  for (uint32_t i = 0; i < 2000; ++i) bytes += Get(2 * i + 1, "/wait");
  pipe_->Send(bytes);
  EXPECT_EQ(handler_.facts.begun, 8);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.lost, 8);
}

// In HPACK one byte refers to a field of thousands, over which nghttp2 goes.
TEST_F(Http2SessionTest, TrailersThatReferToALargeFieldEndTheConnection) {
  Open();
  pipe_->Send(Post(1, "/wait"));
  // A literal that is added to the table, and references to it.
  const std::string literal = "\x40" + HpackLength(1) + "a" + HpackLength(4000) + std::string(4000, 'b');
  pipe_->Send(BytesOf({kHeaders, kEndHeaders | kEndStream, 1, literal + std::string(10'000, '\xBE')}));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(refusals_.Of(Refusal::kHeadTooLarge), 1);
}

TEST_F(Http2SessionTest, RapidResetsEndTheConnection) {
  Open();
  std::string bytes;
  for (uint32_t i = 0; i < 1000; ++i) bytes += Get(2 * i + 1, "/wait") + ResetFrame(2 * i + 1, kCancel);
  pipe_->Send(bytes);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_LE(handler_.facts.begun, limits_.max_resets_per_second + 2);
  EXPECT_EQ(refusals_.Of(Refusal::kResets), 1);
}

TEST_F(Http2SessionTest, ResetsAtAPoliteRateAreFine) {
  Open();
  for (uint32_t i = 0; i < 1000; ++i) {
    pipe_->Send(Get(2 * i + 1, "/wait") + ResetFrame(2 * i + 1, kCancel));
    loop_.Advance(absl::Seconds(1.0) / limits_.max_resets_per_second);
  }
  EXPECT_FALSE(pipe_->lost());
  EXPECT_EQ(handler_.facts.begun, 1000);
}

TEST_F(Http2SessionTest, ResetsThatTheClientProvokesCountAsItsOwn) {
  Open();
  std::string bytes;
  for (uint32_t i = 0; i < 1000; ++i) bytes += Get(2 * i + 1, "/wait") + WindowFrame(2 * i + 1, 0x7fffffff);
  pipe_->Send(bytes);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_LE(handler_.facts.begun, limits_.max_resets_per_second + 2);
  EXPECT_EQ(refusals_.Of(Refusal::kResets), 1);
}

// nghttp2 resets these streams without telling of an invalid frame.
TEST_F(Http2SessionTest, ResetsThatABodyProvokesCountAsTheClientsOwn) {
  const Fields head = With(PostFields("/wait"), {{"content-length", "3"}});
  for (const std::string body : {"four", "no"}) {
    SCOPED_TRACE(body);
    handler_.facts = {};
    const int64_t resets_before = refusals_.Of(Refusal::kResets);
    Open();
    for (uint32_t i = 0; i < 1000 && !pipe_->lost(); ++i)
      pipe_->Send(HeadersFrame(2 * i + 1, head, kEndHeaders) + DataFrame(2 * i + 1, body, true));
    EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
    EXPECT_TRUE(pipe_->lost());
    EXPECT_LE(handler_.facts.begun, limits_.max_resets_per_second + 2);
    EXPECT_EQ(refusals_.Of(Refusal::kResets) - resets_before, 1);
  }
}

TEST_F(Http2SessionTest, ResetsOfBodiesBeyondTheirWindowCountAsTheClientsOwn) {
  Open();
  const std::string part(16 << 10, 'x');
  for (uint32_t i = 0; i < 1000 && !pipe_->lost(); ++i) {
    pipe_->Send(Post(2 * i + 1, "/wait"));
    for (int parts = 0; parts < 8 && !pipe_->lost(); ++parts) pipe_->Send(DataFrame(2 * i + 1, part, false));
  }
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_LE(handler_.facts.begun, limits_.max_resets_per_second + 2);
}

// gRPC's clients send one for each part of an answer, to measure the connection.
TEST_F(Http2SessionTest, APingForEachAnswerIsFine) {
  Open();
  const std::string ping = BytesOf({kPing, 0, 0, kPong});
  for (uint32_t i = 0; i < 5000; ++i) pipe_->Send(Get(2 * i + 1) + ping);
  EXPECT_FALSE(pipe_->lost());
  EXPECT_EQ(handler_.facts.answered, 5000);
  EXPECT_EQ(refusals_.Of(Refusal::kControlFrames), 0);
}

TEST_F(Http2SessionTest, AnswersDoNotAllowPingsThatWereNotSent) {
  Open();
  for (uint32_t i = 0; i < 1000; ++i) pipe_->Send(Get(2 * i + 1));
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += BytesOf({kPing, 0, 0, kPong});
  pipe_->Send(pings);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
}

struct Flood {
  const char* name;
  std::string frame;
};
std::ostream& operator<<(std::ostream& out, const Flood& flood) { return out << flood.name; }

class FloodTest : public Http2SessionTest, public ::testing::WithParamInterface<Flood> {};

TEST_P(FloodTest, EndsTheConnection) {
  Open();
  pipe_->Send(Post(1, "/wait"));
  std::string bytes;
  for (int i = 0; i < 50000; ++i) bytes += GetParam().frame;
  pipe_->Send(bytes);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(refusals_.Of(Refusal::kControlFrames), 1);
  EXPECT_EQ(handler_.facts.lost, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Frames, FloodTest,
    ::testing::Values(Flood{"Ping", BytesOf({kPing, 0, 0, kPong})}, Flood{"Settings", SettingsFrame()},
                      Flood{"Priority", BytesOf({kPriority, 0, 1, std::string(5, '\1')})},
                      Flood{"Pong", BytesOf({kPing, kAck, 0, kPong})},
                      Flood{"EmptyData", DataFrame(1, "", false)},
                      Flood{"PaddedEmptyData", BytesOf({kData, kPadded, 1, std::string(1, '\0')})},
                      Flood{"PaddingAlone", BytesOf({kData, kPadded, 1, "\x03" + std::string(3, '\0')})},
                      Flood{"Window", WindowFrame(0, 1)}),
    [](const auto& flood) { return std::string(flood.param.name); });

// Frames of a stream whose request and answer are complete.
class LateFloodTest : public Http2SessionTest, public ::testing::WithParamInterface<Flood> {};

TEST_P(LateFloodTest, EndsTheConnection) {
  Open();
  pipe_->Send(Get(1));
  Answers();
  ASSERT_EQ(handler_.facts.answered, 1);
  std::string bytes;
  for (int i = 0; i < 50000; ++i) bytes += GetParam().frame;
  pipe_->Send(bytes);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(refusals_.Of(Refusal::kControlFrames), 1);
}

INSTANTIATE_TEST_SUITE_P(Frames, LateFloodTest,
                         ::testing::Values(Flood{"Head", Get(1)}, Flood{"Data", DataFrame(1, "x", false)},
                                           Flood{"EmptyData", DataFrame(1, "", false)}),
                         [](const auto& flood) { return std::string(flood.param.name); });

// The client has sent all this before it hears that the answers are complete.
TEST_F(Http2SessionTest, WhatAClientSendsBeforeItHearsOfTheEndIsFine) {
  Open();
  for (uint32_t stream = 1; stream < 800; stream += 2) {
    pipe_->Send(Post(stream, "/early"));
    std::string late;
    for (int i = 0; i < 64; ++i) late += DataFrame(stream, std::string(1000, 'x'), false);
    pipe_->Send(late + HeadersFrame(stream, {{"trailer", "yes"}}, kEndHeaders | kEndStream));
  }
  Answers();
  pipe_->Send(Get(801));
  EXPECT_EQ(handler_.facts.answered, 401);
  EXPECT_FALSE(pipe_->lost());
  EXPECT_EQ(refusals_.Of(Refusal::kControlFrames), 0);
}

TEST_F(Http2SessionTest, RequestsThatADrainIgnoresAreFine) {
  Open();
  pipe_->Send(Post(1, "/wait"));
  pipe_->session()->Drain(absl::ZeroDuration());
  loop_.RunUntilIdle();
  for (uint32_t stream = 3; stream < 200; stream += 2) {
    std::string body = Post(stream, "/wait");
    for (int i = 0; i < 60; ++i) body += DataFrame(stream, std::string(1000, 'x'), i == 59);
    pipe_->Send(body);
  }
  EXPECT_EQ(handler_.facts.begun, 1);
  EXPECT_FALSE(pipe_->lost());
  std::string late;
  for (int i = 0; i < 2000; ++i) late += Get(3, "/wait");
  pipe_->Send(late);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm)) << "they are no new streams";
}

// As a client does whose calls all run into the server's bounds at once.
TEST_F(Http2SessionTest, BodiesOfRefusedStreamsAreFine) {
  limits_.max_streams = 8;
  Open();
  std::string bytes;
  for (uint32_t i = 0; i < 200; ++i) {
    const uint32_t stream = 2 * i + 1;
    bytes += Post(stream, "/wait");
    for (int j = 0; j < 60; ++j) bytes += DataFrame(stream, std::string(1000, 'x'), j == 59);
  }
  pipe_->Send(bytes);
  EXPECT_EQ(handler_.facts.begun, 8);
  EXPECT_FALSE(pipe_->lost());
}

TEST_F(Http2SessionTest, ManyContinuationsEndTheConnection) {
  Open();
  const std::string block = HeaderBlock(GetFields());
  std::string bytes = BytesOf({kHeaders, kEndStream, 1, block});
  for (int i = 0; i < 1000; ++i) bytes += BytesOf({kContinuation, 0, 1, ""});
  pipe_->Send(bytes);
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.begun, 0);
  EXPECT_THAT(GoawayCodes(Answers()), Contains(kEnhanceYourCalm));
  EXPECT_EQ(refusals_.Of(Refusal::kContinuations), 1);
}

TEST_F(Http2SessionTest, ErrorsThatNghttp2AnswersAreCounted) {
  Open();
  pipe_->Send(BytesOf({kHeaders, kEndHeaders | kEndStream, 1, std::string(20, '\xff')}));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(refusals_.Of(Refusal::kMalformed), 1);
}

TEST_F(Http2SessionTest, ALargeHeadIsAnswered431) {
  Open();
  // Frames above 16 KiB are allowed from here on.
  pipe_->Send(BytesOf({kSettings, kAck, 0, ""}));
  pipe_->TakeOutput();
  pipe_->Send(HeadersFrame(1, With(GetFields(), {{"x", std::string(20000, 'a')}}), kEndHeaders | kEndStream));
  const auto data = OfType(Answers(), kData);
  ASSERT_THAT(data, SizeIs(1));
  EXPECT_THAT(data[0].payload, ::testing::HasSubstr("16384 bytes"));
  EXPECT_EQ(handler_.facts.begun, 0);
  EXPECT_FALSE(pipe_->lost());
}

TEST_F(Http2SessionTest, AHeadThatGrowsByReferencesIsBounded) {
  Open();
  pipe_->TakeOutput();
  // One field of 3,000 bytes goes into the table; each further byte refers to it.
  const std::string name = "x";
  const std::string value(3000, 'a');
  const std::string indexed = "\x40" + HpackLength(name.size()) + name + HpackLength(value.size()) + value;
  pipe_->Send(
      BytesOf({kHeaders, kEndHeaders | kEndStream, 1,
               HeaderBlock(GetFields()) + indexed + std::string(8000, static_cast<char>(0x80 | 62))}));
  EXPECT_THAT(GoawayCodes(Answers()), SizeIs(1));
  EXPECT_TRUE(pipe_->lost());
  EXPECT_EQ(handler_.facts.begun, 0);
}

TEST_F(Http2SessionTest, OutputIsBoundedWhileTheClientDoesNotRead) {
  Open();
  pipe_->Send(WindowFrame(0, 1 << 30) + SettingsFrame(Setting(4, 1 << 30)));
  pipe_->TakeOutput();
  pipe_->LimitRoom(0);
  pipe_->Send(Post(1, "/large"));
  for (int i = 0; i < 256; ++i) pipe_->Send(DataFrame(1, std::string(16384, 'x'), false));
  pipe_->Send(DataFrame(1, "", true));
  EXPECT_LE(pipe_->output().size(), Transport::kHighWater + (64 << 10));
  pipe_->GiveRoom(size_t{1} << 40);
  size_t received = 0;
  for (const Frame& frame : OfType(Answers(), kData)) received += frame.payload.size();
  EXPECT_EQ(received, 256 * 16384U);
  EXPECT_EQ(handler_.facts.answered, 1);
}

}  // namespace
}  // namespace saccade::server
