// How bodies come: in chunks, compressed, cut off, lied about.
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/content_coding.h"
#include "server/http/request_parser.h"
#include "server/http/testing/test_service.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kMaxBody = 100'000;

class BodyTest : public ::testing::Test {
 protected:
  BodyTest() { service_.options.max_body_bytes = kMaxBody; }

  std::string Ask(const std::string& request) { return service_.Ask(request); }

  TestService service_{
      {{"POST", "/echo", Text([](const HttpRequest& r) { return std::string(r.body); })},
       {"POST", "/size", Text([](const HttpRequest& r) { return absl::StrCat(r.body.size()); })}}};
};

std::string Coded(const std::string& coding, const std::string& body, const std::string& path = "/echo") {
  return Post(path, body, absl::StrCat("Content-Encoding: ", coding, "\r\n"));
}

std::string Chunked(const std::string& chunks, const std::string& headers = "") {
  return absl::StrCat("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n", headers, "\r\n",
                      chunks);
}

std::string Encoded(ContentCoding coding, absl::string_view body) { return Encode(coding, {&body, 1}); }

std::string Decoded(ContentCoding coding, absl::string_view body) {
  ContentDecoder decoder(coding);
  std::string decoded;
  const absl::Status written = decoder.Write(body, [&](absl::string_view bytes) {
    decoded.append(bytes.data(), bytes.size());
    return true;
  });
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_TRUE(decoder.Finish().ok());
  return decoded;
}

TEST_F(BodyTest, ChunksArePutTogether) {
  const std::string output = Ask(Chunked("5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nTrailer: x\r\n\r\n") +
                                 Chunked("0\r\n\r\n") + Chunked("2\r\nok\r\n000\r\n\r\n"));
  const std::vector<std::string> parts = absl::StrSplit(output, "HTTP/1.1 200 OK\r\n");
  EXPECT_THAT(parts,
              ElementsAre("", EndsWith("\r\n\r\nhello world"), EndsWith("\r\n\r\n"), EndsWith("\r\n\r\nok")));
}

TEST_F(BodyTest, ChunksMayComeByteByByte) {
  const auto connection = service_.Connect();
  for (const char byte : Chunked("5\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n")) {
    connection->Send(std::string(1, byte));
  }
  EXPECT_THAT(connection->TakeOutput(), EndsWith("\r\n\r\nhello0123456789"));
}

TEST_F(BodyTest, ChunksAreBounded) {
  std::string chunks;
  for (int i = 0; i < 101; ++i) absl::StrAppend(&chunks, "3e8\r\n", std::string(1000, 'x'), "\r\n");
  EXPECT_THAT(Ask(Chunked(chunks + "0\r\n\r\n")), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Ask(Chunked(absl::StrCat("1;", std::string(200'000, 'x')))), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(Chunked("0\r\n" + std::string(200'000, 'x'))), StartsWith("HTTP/1.1 400 "));
}

TEST_F(BodyTest, NoLengthIsNoBody) {
  EXPECT_THAT(Ask("POST /size HTTP/1.1\r\nHost: a\r\n\r\n"), EndsWith("\r\n\r\n0"));
}

TEST_F(BodyTest, ABodyWhereNoneBelongsIsRefused) {
  EXPECT_THAT(Ask("GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 405 "));
}

TEST_F(BodyTest, ACutOffBodyIsNotHandled) {
  for (const std::string& request :
       {std::string("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello"),
        Chunked("9\r\nhello"),
        std::string(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f")}) {
    const auto connection = service_.Connect();
    connection->Send(request);
    connection->EndSending();
    EXPECT_THAT(connection->TakeOutput(), StartsWith("HTTP/1.1 400 ")) << request;
  }
}

TEST_F(BodyTest, CompressedBodiesAreDecoded) {
  const std::string text = "hello, hello, hello";
  EXPECT_THAT(Ask(Coded("gzip", Encoded(ContentCoding::kGzip, text))), EndsWith("\r\n\r\n" + text));
  EXPECT_THAT(Ask(Coded("Deflate", Encoded(ContentCoding::kDeflate, text))), EndsWith("\r\n\r\n" + text));
  EXPECT_THAT(Ask(Coded("identity", text)), EndsWith("\r\n\r\n" + text));
  const std::string twice = Encoded(ContentCoding::kGzip, "one ") + Encoded(ContentCoding::kGzip, "two");
  EXPECT_THAT(Ask(Coded("gzip", twice)), EndsWith("\r\n\r\none two"));
  std::string chunks;
  for (const char byte : twice) absl::StrAppend(&chunks, "1\r\n", std::string(1, byte), "\r\n");
  EXPECT_THAT(Ask(Chunked(chunks + "0\r\n\r\n", "Content-Encoding: gzip\r\n")), EndsWith("\r\n\r\none two"));
}

TEST_F(BodyTest, CompressedBodiesThatAreNoneAreRefused) {
  const std::string gzip = Encoded(ContentCoding::kGzip, "hello"),
                    deflate = Encoded(ContentCoding::kDeflate, "hello");
  EXPECT_THAT(Ask(Coded("gzip", "hello")),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("not gzip as its Content-Encoding says")));
  EXPECT_THAT(Ask(Coded("deflate", gzip)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(Coded("gzip", gzip.substr(0, gzip.size() - 3))),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("cut off")));
  EXPECT_THAT(Ask(Coded("gzip", gzip + "x")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(Coded("deflate", deflate + deflate)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n\r\n"), EndsWith("\r\n\r\n"))
      << "no body need not be gzip";
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  for (const char* coding : {"br", "gzip, gzip", "compress"}) {
    EXPECT_THAT(Ask(Coded(coding, gzip)), StartsWith("HTTP/1.1 415 ")) << coding;
  }
}

TEST_F(BodyTest, ABombEndsAtTheBound) {
  EXPECT_THAT(Ask(Coded("gzip", Encoded(ContentCoding::kGzip, std::string(kMaxBody, 0)), "/size")),
              EndsWith("\r\n\r\n100000"));
  const std::string bomb = Encoded(ContentCoding::kGzip, std::string(kMaxBody + 1, 0));
  ASSERT_LT(bomb.size(), 2000u);
  EXPECT_THAT(
      Ask(Coded("gzip", bomb)),
      AllOf(StartsWith("HTTP/1.1 413 "),
            HasSubstr("the body, decompressed, has more than the 100000 bytes taken; --max-message-bytes")));
}

// As for messages of gRPC: a few bytes of zeros would keep a thread busy for long.
TEST_F(BodyTest, ACompressedBodyBecomesLargerWithinBoundsAlone) {
  service_.options.max_decompressed_bytes = 1'000;
  const auto size_of = [this](const std::string& body) {
    return Ask(Coded("gzip", Encoded(ContentCoding::kGzip, body), "/size"));
  };
  EXPECT_THAT(size_of(std::string(1'000, 0)), EndsWith("\r\n\r\n1000"));
  std::string noise;
  std::mt19937 random(1);
  while (noise.size() < 20'000) noise.push_back(static_cast<char>(random()));
  EXPECT_THAT(size_of(noise + std::string(60'000, 0)), EndsWith("\r\n\r\n80000"));
  const std::string zeros = Encoded(ContentCoding::kGzip, std::string(kMaxBody, 0));
  ASSERT_LT(64 * zeros.size(), kMaxBody);
  EXPECT_THAT(Ask(Coded("gzip", zeros)),
              AllOf(StartsWith("HTTP/1.1 413 "),
                    HasSubstr(absl::StrCat("the body, decompressed, has more than the ", 64 * zeros.size(),
                                           " bytes that ", zeros.size(),
                                           " compressed ones may become; send it uncompressed"))));
  EXPECT_EQ(service_.refusals.Of(Refusal::kDecompressedTooLarge), 1);
}

TEST_F(BodyTest, AllBodiesTogetherAreBounded) {
  BoundedLedger ledger(70'000);
  service_.options.ledger = &ledger;
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(Ask(Post("/size", std::string(60'000, 'x'))), EndsWith("\r\n\r\n60000"));
  EXPECT_THAT(Ask(Post("/size", std::string(80'000, 'x'))),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: 1\r\n"),
                    HasSubstr("no bytes are left")));
  EXPECT_THAT(Ask(Coded("gzip", Encoded(ContentCoding::kGzip, std::string(80'000, 'x')), "/size")),
              StartsWith("HTTP/1.1 503 "))
      << "it is charged as it is decoded";
  EXPECT_EQ(ledger.charged(), 0);
  EXPECT_EQ(service_.refusals.Of(Refusal::kBytes), 2);
  EXPECT_EQ(ledger.clients().front(), "ipv4:127.0.0.1");
}

TEST_F(BodyTest, AnAnnouncedBodyIsChargedBeforeItComes) {
  BoundedLedger ledger(100'000);
  service_.options.ledger = &ledger;
  const std::string request = Post("/size", std::string(90'000, 'x'));
  const auto connection = service_.Connect();
  connection->Send(request.substr(0, request.size() - 90'000));
  EXPECT_EQ(ledger.charged(), 90'000);
  const auto other = service_.Connect();
  other->Send(request.substr(0, request.size() - 90'000));
  EXPECT_THAT(other->TakeOutput(), StartsWith("HTTP/1.1 503 ")) << "without its body having been read";
  EXPECT_THAT(service_.Ask(*connection, request.substr(request.size() - 90'000)), EndsWith("90000"));
  EXPECT_EQ(ledger.charged(), 0);
  connection->Send(request.substr(0, request.size() - 1));
  EXPECT_EQ(ledger.charged(), 90'000);
  connection->Break();
  EXPECT_EQ(ledger.charged(), 0);
}

TEST_F(BodyTest, ABodyOfUnknownLengthIsChargedAsItGrows) {
  BoundedLedger ledger(int64_t{1} << 30);
  service_.options.ledger = &ledger;
  service_.options.max_body_bytes = 300'000;
  const auto connection = service_.Connect();
  connection->Send("POST /size HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(ledger.charged(), 0);
  const std::string chunk = absl::StrCat("fff0\r\n", std::string(0xfff0, 'x'), "\r\n");
  const int64_t charged[] = {64 << 10, 128 << 10, 256 << 10, 256 << 10};
  for (const int64_t expected : charged) {
    connection->Send(chunk);
    EXPECT_EQ(ledger.charged(), expected);
  }
  connection->Send("20\r\n" + std::string(0x20, 'x') + "\r\n");
  EXPECT_EQ(ledger.charged(), 256 << 10);
  connection->Send("20\r\n" + std::string(0x20, 'x') + "\r\n");
  EXPECT_EQ(ledger.charged(), 300'000) << "all that was charged is used, and there is a bound";
  EXPECT_THAT(service_.Ask(*connection, "0\r\n\r\n"), EndsWith(absl::StrCat(4 * 0xfff0 + 0x40)));
}

TEST_F(BodyTest, ABodyOfUnknownLengthMayReachTheBound) {
  const auto sent = [](size_t size) {
    return Chunked(absl::StrCat(absl::Hex(size), "\r\n", std::string(size, 'x'), "\r\n0\r\n\r\n"));
  };
  EXPECT_THAT(Ask(sent(kMaxBody)), EndsWith(std::string(kMaxBody, 'x')));
  EXPECT_THAT(Ask(sent(kMaxBody + 1)),
              AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("the body has more than the 100000 bytes taken")));
}

// A small body may become a thousand times larger; decoding that would hold up the loop.
TEST_F(BodyTest, ALargeDecodedBodyIsLeftToThePool) {
  service_.options.max_body_bytes = 100 << 20;
  service_.options.max_decompressed_bytes = service_.options.max_body_bytes;
  // The pool is busy until the test says so.
  absl::Notification go;
  ASSERT_TRUE(service_.pool.Submit("test", [&go] { go.WaitForNotification(); }));
  const auto connection = service_.Connect();
  connection->Send(Coded("gzip", Encoded(ContentCoding::kGzip, std::string(50 << 20, 0)), "/size"));
  EXPECT_EQ(connection->TakeOutput(), "");
  go.Notify();
  service_.FinishWork();
  EXPECT_THAT(connection->TakeOutput(), EndsWith("\r\n\r\n52428800"));
}

TEST_F(BodyTest, ACompressedBodyIsChargedWithWhatItBecomes) {
  BoundedLedger ledger(int64_t{1} << 30);
  service_.options.ledger = &ledger;
  const std::string body = Encoded(ContentCoding::kGzip, std::string(90'000, 0));
  EXPECT_THAT(Ask(Coded("gzip", body, "/size")), EndsWith("\r\n\r\n90000"));
  // With what the decoder itself takes.
  EXPECT_EQ(ledger.max_charged(), static_cast<int64_t>(kMaxBody + body.size() + (size_t{48} << 10)));
  EXPECT_EQ(ledger.charged(), 0);
}

TEST_F(BodyTest, ASlowBodyIsEnded) {
  service_.options.body_grace = absl::Seconds(10);
  service_.options.min_bytes_per_second = 1000;
  BoundedLedger ledger(int64_t{1} << 30);
  service_.options.ledger = &ledger;
  const auto connection = service_.Connect();
  connection->Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\nfive.");
  connection->Send(std::string(4995, 'x'));
  service_.loop.Advance(absl::Milliseconds(14'999));
  EXPECT_EQ(connection->TakeOutput(), "");
  service_.loop.Advance(absl::Milliseconds(1));
  EXPECT_THAT(connection->TakeOutput(), AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("in time")));
  EXPECT_TRUE(connection->closed());
  EXPECT_EQ(ledger.charged(), 0);
  EXPECT_EQ(service_.refusals.Of(Refusal::kStalledUpload), 1);
  // A body that is complete may be handled for as long as it takes.
  const auto fast = service_.Connect();
  service_.Ask(*fast, Post("/echo", "hello"));
  service_.loop.Advance(absl::Minutes(1));
  EXPECT_FALSE(fast->closing());
}

TEST_F(BodyTest, AnExpectationThatNobodyKnowsIsRefused) {
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 417 "));
}

TEST_F(BodyTest, WhatHasNoBodyIsNotAskedFor) {
  EXPECT_THAT(Ask("POST /size HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(BodyTest, ABodyThatIsThereIsNotAskedFor) {
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(BodyTest, AnswersAreCompressedForWhoAsks) {
  const std::string text(1000, 'x');
  const auto ask = [&](const std::string& accept) {
    const std::string answer = Ask(absl::StrCat("POST /echo HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ", accept,
                                                "\r\nContent-Length: 1000\r\n\r\n", text));
    const std::pair<std::string, std::string> parts = absl::StrSplit(answer, absl::MaxSplits("\r\n\r\n", 1));
    return parts;
  };
  const auto gzip = ask("br, gzip");
  EXPECT_THAT(gzip.first, HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_EQ(Decoded(ContentCoding::kGzip, gzip.second), text);
  EXPECT_EQ(Decoded(ContentCoding::kDeflate, ask("deflate").second), text);
  EXPECT_EQ(ask("identity").second, text);
  // Too little to be worth it.
  EXPECT_THAT(
      Ask("POST /echo HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"),
      EndsWith("\r\n\r\nhello"));
}

// What noise takes does not become less, and comes in many pieces.
TEST(ContentCodingTest, LargeBodiesComeBackAsTheyWere) {
  std::minstd_rand random(3);
  std::string noise(300'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random() >> 8);
  for (const auto coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
    EXPECT_EQ(Decoded(coding, Encoded(coding, noise)), noise);
    EXPECT_EQ(Decoded(coding, Encoded(coding, std::string(1'000'000, 'x'))), std::string(1'000'000, 'x'));
    EXPECT_EQ(Decoded(coding, Encoded(coding, "")), "");
  }
}

TEST(ContentCodingTest, NamesAreTakenAsClientsWriteThem) {
  EXPECT_EQ(ContentCodingOf(""), ContentCoding::kIdentity);
  EXPECT_EQ(ContentCodingOf(" GZip "), ContentCoding::kGzip);
  EXPECT_EQ(ContentCodingOf("x-gzip"), ContentCoding::kGzip);
  EXPECT_EQ(ContentCodingOf("gzip, gzip"), std::nullopt);
}

TEST(ContentCodingTest, ADecoderThatIsToldToStopStops) {
  ContentDecoder decoder(ContentCoding::kGzip);
  int pieces = 0;
  const auto stop = [&pieces](absl::string_view) { return ++pieces < 2; };
  EXPECT_TRUE(decoder.Write(Encoded(ContentCoding::kGzip, std::string(1'000'000, 'x')), stop).ok());
  EXPECT_EQ(pieces, 2);
}

TEST(ContentCodingTest, TheBestOfWhatIsAcceptedIsTaken) {
  const std::pair<const char*, ContentCoding> cases[] = {
      {"", ContentCoding::kIdentity},
      {"*", ContentCoding::kIdentity},
      {"br", ContentCoding::kIdentity},
      {"gzip", ContentCoding::kGzip},
      {"gzip, deflate", ContentCoding::kGzip},
      {"deflate, gzip", ContentCoding::kDeflate},
      {"gzip;q=0", ContentCoding::kIdentity},
      {"gzip;q=0.5, deflate;q=0.8", ContentCoding::kDeflate},
      {"gzip;q=0.5, identity", ContentCoding::kIdentity},
      {"gzip;q=x", ContentCoding::kIdentity},
      {"gzip ; q=0.3", ContentCoding::kGzip},
      {",,;;,gzip", ContentCoding::kGzip}};
  for (const auto& [header, expected] : cases) EXPECT_EQ(AcceptedCoding(header), expected) << header;
}

TEST(ContentCodingTest, ACodingIsAcceptedByItsFirstWeight) {
  for (const char* header : {"gzip", "deflate, x-gzip;q=0.1", "br, GZIP", "gzip, gzip;q=0"})
    EXPECT_TRUE(Accepts(header, ContentCoding::kGzip)) << header;
  for (const char* header : {"", "*", "deflate", "gzip;q=0", "gzip;q=0, gzip"})
    EXPECT_FALSE(Accepts(header, ContentCoding::kGzip)) << header;
}

// Whatever comes, in whatever pieces: an answer, or a request, and never more than was sent.
TEST(RequestParserTest, BytesOfAnyKindAreSurvived) {
  const HttpLimits limits;
  const std::string head =
      "POST /v2/models/m/infer?q HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string chunks = "5;ext=\"q\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  std::minstd_rand random(1);
  const auto mutated = [&random](std::string bytes) {
    for (uint32_t changes = random() % 4; changes > 0 && !bytes.empty(); --changes) {
      const size_t at = random() % bytes.size();
      if (random() % 4 == 0) {
        bytes.erase(at, random() % 4);
      } else {
        bytes[at] = "\r\n:;0fF \t\x7f\x80\xff,=\"A"[random() % 16];
      }
    }
    return bytes;
  };
  int whole = 0;
  for (int i = 0; i < 20'000; ++i) {
    RequestParser parser(limits);
    if (parser.ReadHead(mutated(head)) || !parser.chunked()) continue;
    std::string left = mutated(chunks), body;
    for (size_t shown = 1; !parser.body_done() && shown <= left.size();) {
      size_t taken = 0;
      const auto take = [&body](absl::string_view bytes) {
        body.append(bytes.data(), bytes.size());
        return bytes.size();
      };
      if (parser.ReadChunks(absl::string_view(left).substr(0, shown), take, &taken)) break;
      left.erase(0, taken);
      shown = taken > 0 ? 1 : shown + 1 + random() % 8;
    }
    EXPECT_LE(body.size(), chunks.size());
    whole += body == "hello0123456789" ? 1 : 0;
  }
  EXPECT_GT(whole, 1000);
}

TEST(RequestParserTest, WhoWantsTheConnectionToStay) {
  const HttpLimits limits;
  const std::pair<const char*, bool> cases[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true}};
  for (const auto& [bytes, keep] : cases) {
    RequestParser parser(limits);
    EXPECT_FALSE(parser.ReadHead(bytes).has_value());
    EXPECT_EQ(parser.keep_alive(), keep) << bytes;
  }
}

TEST(RequestParserTest, ABodyMayBeTakenInPieces) {
  const HttpLimits limits;
  RequestParser parser(limits);
  ASSERT_FALSE(
      parser.ReadHead("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").has_value());
  std::string left = "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", body;
  for (int i = 0; i < 20 && !parser.body_done(); ++i) {
    // Two bytes in each call.
    size_t room = 2, taken = 0;
    const auto take = [&](absl::string_view bytes) {
      const absl::string_view some = bytes.substr(0, room);
      body.append(some.data(), some.size());
      room -= some.size();
      return some.size();
    };
    ASSERT_FALSE(parser.ReadChunks(left, take, &taken).has_value());
    left.erase(0, taken);
  }
  EXPECT_TRUE(parser.body_done());
  EXPECT_EQ(body, "hello world");
  EXPECT_EQ(left, "");
}

}  // namespace
}  // namespace saccade::server
