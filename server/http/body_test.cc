// How bodies come: in chunks, compressed, cut off, lied about.
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/content_coding.h"
#include "server/http/http_server.h"
#include "server/http/request_parser.h"
#include "server/http/test_client.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kMaxBody = 100'000;

std::unique_ptr<HttpServer> Serve(size_t room = size_t{1} << 30) {
  HttpServerOptions options;
  options.host = "127.0.0.1";
  options.max_body_bytes = kMaxBody;
  options.max_bodies_bytes = room;
  auto server = HttpServer::Start(
      options, {{"POST", "/echo",
                 [](const HttpRequest& r) { return HttpResponse{200, "text/plain", std::string(r.body)}; }},
                {"POST", "/size", [](const HttpRequest& r) {
                   return HttpResponse{200, "text/plain", absl::StrCat(r.body.size())};
                 }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::string Coded(const std::string& coding, const std::string& body, const std::string& path = "/echo") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nContent-Encoding: ", coding,
                      "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

std::string Chunked(const std::string& chunks, const std::string& headers = "") {
  return absl::StrCat("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", headers, "\r\n", chunks);
}

std::string Encoded(ContentCoding coding, absl::string_view body) { return Encode(coding, {&body, 1}); }

std::string Decoded(ContentCoding coding, absl::string_view body) {
  Decoder decoder(coding);
  std::string decoded;
  const absl::Status written = decoder.Write(body, [&](absl::string_view bytes) {
    decoded.append(bytes.data(), bytes.size());
    return true;
  });
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_TRUE(decoder.Finish().ok());
  return decoded;
}

TEST(BodyTest, ChunksArePutTogether) {
  const auto server = Serve();
  TestClient client(server->port());
  ASSERT_TRUE(client.Send(Chunked("5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nTrailer: x\r\n\r\n") +
                          Chunked("0\r\n\r\n") + Chunked("2\r\nok\r\n000\r\n\r\n")));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nhello world"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nok"));
}

TEST(BodyTest, ChunksMayComeByteByByte) {
  const auto server = Serve();
  TestClient client(server->port());
  for (const char byte : Chunked("5\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n")) {
    ASSERT_TRUE(client.Send(std::string(1, byte)));
  }
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\nhello0123456789"));
}

TEST(BodyTest, ChunksAreBounded) {
  const auto server = Serve();
  std::string chunks;
  for (int i = 0; i < 101; ++i) absl::StrAppend(&chunks, "3e8\r\n", std::string(1000, 'x'), "\r\n");
  EXPECT_THAT(Ask(*server, Chunked(chunks + "0\r\n\r\n")), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Ask(*server, Chunked(absl::StrCat("1;", std::string(200'000, 'x')))),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, Chunked("0\r\n" + std::string(200'000, 'x'))), StartsWith("HTTP/1.1 400 "));
}

TEST(BodyTest, WhatIsNoChunkIsRefused) {
  const auto server = Serve();
  for (const char* chunks : {"x\r\n", "-1\r\nh\r\n", "0x1\r\nh\r\n\r\n", " 1\r\nh\r\n", "1\nh\r\n",
                             "1\r\nhello\r\n", "10000000000000000\r\nh", "\r\n\r\n", "1 ;\x01\r\nh\r\n"}) {
    EXPECT_THAT(Ask(*server, Chunked(chunks)), StartsWith("HTTP/1.1 400 ")) << chunks;
  }
}

TEST(BodyTest, TwoLengthsAreRefused) {
  const auto server = Serve();
  for (const char* headers :
       {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: -1\r\n", "Content-Length: +5\r\n",
        "Content-Length: 5x\r\n", "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length : 5\r\n"}) {
    EXPECT_THAT(Ask(*server, absl::StrCat("POST /echo HTTP/1.1\r\n", headers, "\r\n12345")),
                StartsWith("HTTP/1.1 400 "))
        << headers;
  }
  for (const char* coding : {"gzip, chunked", "gzip", "identity", "xchunked"}) {
    EXPECT_THAT(Ask(*server, absl::StrCat("POST /echo HTTP/1.1\r\nTransfer-Encoding: ", coding, "\r\n\r\n")),
                StartsWith("HTTP/1.1 501 "))
        << coding;
  }
}

TEST(BodyTest, NoLengthIsNoBody) {
  EXPECT_THAT(Ask(*Serve(), "POST /size HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\n0"));
}

TEST(BodyTest, ABodyWhereNoneBelongsIsRefused) {
  const auto server = Serve();
  EXPECT_THAT(Ask(*server, "GET /echo HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"), StartsWith("HTTP/1.1 405 "));
}

TEST(BodyTest, ACutOffBodyIsNotHandled) {
  const auto server = Serve();
  for (const std::string& request :
       {std::string("POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nhello"), Chunked("9\r\nhello"),
        std::string("POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f")}) {
    TestClient client(server->port());
    ASSERT_TRUE(client.Send(request));
    client.EndSending();
    EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 400 ")) << request;
  }
}

TEST(BodyTest, CompressedBodiesAreDecoded) {
  const auto server = Serve();
  const std::string text = "hello, hello, hello";
  EXPECT_THAT(Ask(*server, Coded("gzip", Encoded(ContentCoding::kGzip, text))), EndsWith("\r\n\r\n" + text));
  EXPECT_THAT(Ask(*server, Coded("Deflate", Encoded(ContentCoding::kDeflate, text))),
              EndsWith("\r\n\r\n" + text));
  EXPECT_THAT(Ask(*server, Coded("identity", text)), EndsWith("\r\n\r\n" + text));
  const std::string twice = Encoded(ContentCoding::kGzip, "one ") + Encoded(ContentCoding::kGzip, "two");
  EXPECT_THAT(Ask(*server, Coded("gzip", twice)), EndsWith("\r\n\r\none two"));
  std::string chunks;
  for (const char byte : twice) absl::StrAppend(&chunks, "1\r\n", std::string(1, byte), "\r\n");
  EXPECT_THAT(Ask(*server, Chunked(chunks + "0\r\n\r\n", "Content-Encoding: gzip\r\n")),
              EndsWith("\r\n\r\none two"));
}

TEST(BodyTest, CompressedBodiesThatAreNoneAreRefused) {
  const auto server = Serve();
  const std::string gzip = Encoded(ContentCoding::kGzip, "hello"),
                    deflate = Encoded(ContentCoding::kDeflate, "hello");
  EXPECT_THAT(Ask(*server, Coded("gzip", "hello")),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("not gzip as its Content-Encoding says")));
  EXPECT_THAT(Ask(*server, Coded("deflate", gzip)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, Coded("gzip", gzip.substr(0, gzip.size() - 3))),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("cut off")));
  EXPECT_THAT(Ask(*server, Coded("gzip", gzip + "x")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, Coded("deflate", deflate + deflate)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, "POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n"), EndsWith("\r\n\r\n"))
      << "no body need not be gzip";
  EXPECT_THAT(Ask(*server, "POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  for (const char* coding : {"br", "gzip, gzip", "compress"}) {
    EXPECT_THAT(Ask(*server, Coded(coding, gzip)), StartsWith("HTTP/1.1 415 ")) << coding;
  }
}

TEST(BodyTest, ABombEndsAtTheBound) {
  const auto server = Serve();
  EXPECT_THAT(Ask(*server, Coded("gzip", Encoded(ContentCoding::kGzip, std::string(kMaxBody, 0)), "/size")),
              EndsWith("\r\n\r\n100000"));
  const std::string bomb = Encoded(ContentCoding::kGzip, std::string(kMaxBody + 1, 0));
  ASSERT_LT(bomb.size(), 2000u);
  EXPECT_THAT(Ask(*server, Coded("gzip", bomb)),
              AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("--max-message-bytes")));
}

TEST(BodyTest, AllBodiesTogetherAreBounded) {
  const auto server = Serve(70'000);
  const std::string small =
      absl::StrCat("POST /size HTTP/1.1\r\nContent-Length: 60000\r\n\r\n", std::string(60'000, 'x'));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Ask(*server, small), EndsWith("\r\n\r\n60000"));
  const std::string large =
      absl::StrCat("POST /size HTTP/1.1\r\nContent-Length: 80000\r\n\r\n", std::string(80'000, 'x'));
  EXPECT_THAT(Ask(*server, large), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: 1\r\n")));
  const std::string coded = Coded("gzip", Encoded(ContentCoding::kGzip, std::string(80'000, 'x')), "/size");
  EXPECT_THAT(Ask(*server, coded), StartsWith("HTTP/1.1 503 ")) << "it counts as it is decoded";
}

TEST(BodyTest, AnExpectationThatNobodyKnowsIsRefused) {
  EXPECT_THAT(Ask(*Serve(), "POST /echo HTTP/1.1\r\nExpect: more\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 417 "));
}

TEST(BodyTest, WhatHasNoBodyIsNotAskedFor) {
  EXPECT_THAT(Ask(*Serve(), "POST /size HTTP/1.1\r\nExpect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST(BodyTest, ABodyThatIsThereIsNotAskedFor) {
  EXPECT_THAT(Ask(*Serve(), "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 200 "));
}

TEST(BodyTest, AnswersAreCompressedForWhoAsks) {
  const auto server = Serve();
  const std::string text(1000, 'x');
  const auto ask = [&](const std::string& accept) {
    const std::string answer = Ask(*server, absl::StrCat("POST /echo HTTP/1.1\r\nAccept-Encoding: ", accept,
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
  EXPECT_THAT(Ask(*server, "POST /echo HTTP/1.1\r\nAccept-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"),
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
  Decoder decoder(ContentCoding::kGzip);
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

TEST(RequestParserTest, WhatIsNoRequestIsRefused) {
  const std::pair<const char*, int> cases[] = {{"GET / HTTP/2.0\r\n\r\n", 505},
                                               {"GET / HTTP/1.1\r\n a: b\r\n\r\n", 400},
                                               {"GET / HTTP/1.1\r\na: b\nc: d\r\n\r\n", 400},
                                               {"GET  / HTTP/1.1\r\n\r\n", 400},
                                               {"GET /\x01 HTTP/1.1\r\n\r\n", 400},
                                               {"GET / HTTP/1.1\r\na b: c\r\n\r\n", 400},
                                               {"GET / HTTP/1.1\r\na: \x01\r\n\r\n", 400},
                                               {"\r\n\r\n", 400}};
  for (const auto& [bytes, status] : cases) {
    RequestParser parser;
    const auto refusal = parser.ReadHead(bytes);
    ASSERT_TRUE(refusal.has_value()) << bytes;
    EXPECT_EQ(refusal->status, status) << bytes;
  }
}

// Whatever comes, in whatever pieces: an answer, or a request, and never more than was sent.
TEST(RequestParserTest, BytesOfAnyKindAreSurvived) {
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
    RequestParser parser;
    if (parser.ReadHead(mutated(head)) || !parser.head().chunked) continue;
    std::string left = mutated(chunks), body;
    for (size_t shown = 1; !parser.body_done() && shown <= left.size();) {
      size_t taken = 0;
      const auto take = [&body](absl::string_view bytes) {
        body.append(bytes.data(), bytes.size());
        return true;
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

TEST(RequestParserTest, HeadersAreCounted) {
  std::string bytes = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 101; ++i) absl::StrAppend(&bytes, "a:b\r\n");
  RequestParser parser;
  const auto refusal = parser.ReadHead(bytes + "\r\n");
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, 431);
}

TEST(RequestParserTest, WhoWantsTheConnectionToStay) {
  const std::pair<const char*, bool> cases[] = {{"GET / HTTP/1.1\r\n\r\n", true},
                                                {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false},
                                                {"GET / HTTP/1.0\r\n\r\n", false},
                                                {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true}};
  for (const auto& [bytes, keep] : cases) {
    RequestParser parser;
    EXPECT_FALSE(parser.ReadHead(bytes).has_value());
    EXPECT_EQ(parser.head().keep_alive, keep) << bytes;
  }
}

}  // namespace
}  // namespace saccade::server
