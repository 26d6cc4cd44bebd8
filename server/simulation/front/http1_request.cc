#include "server/simulation/front/http1_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/testing/frames.h"
#include "server/simulation/front/front_peer.h"

namespace saccade::server::simulation {
namespace {

// Larger ones are rare.
int64_t DrawSize(Random& random) { return random.Below(random.Chance(0.2) ? 300'000 : kMaxSmallBody); }

// A message of gRPC: a flag, its length, its bytes.
std::string WebMessage(Random& random) {
  const std::string text = RandomText(random, DrawSize(random));
  return '\0' + BigEndian(text.size(), 4) + text;
}

const char* LineOf(Http1Kind kind) {
  switch (kind) {
    case Http1Kind::kEcho:
      return "POST /echo";
    case Http1Kind::kSized:
      return "GET /sized/";
    case Http1Kind::kHead:
      return "HEAD /sized/";
    case Http1Kind::kWebUnary:
      return "POST /echo.Echo/Unary";
    case Http1Kind::kWebStream:
      return "POST /echo.Echo/Stream";
  }
  return "";
}

// The body before it is framed.
std::string DrawBody(Http1Kind kind, Random& random) {
  if (kind == Http1Kind::kEcho) return RandomText(random, DrawSize(random));
  if (kind == Http1Kind::kWebUnary) return WebMessage(random);
  std::string messages;
  for (int64_t left = random.Below(5); left > 0; --left) messages += WebMessage(random);
  return messages;
}

}  // namespace

std::string SizedText(int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), ' ');
  // A prime, so that no piece that is a power of two long looks like the one before it.
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

std::string InChunks(const std::string& body, Random& random) {
  std::string chunks;
  for (size_t begin = 0; begin < body.size();) {
    const auto left = static_cast<int64_t>(body.size() - begin);
    const auto size =
        static_cast<size_t>(1 + random.Below(random.Chance(0.5) ? left : std::min<int64_t>(left, 2000)));
    absl::StrAppend(&chunks, absl::Hex(size));
    if (random.Chance(0.2)) chunks += random.Chance(0.5) ? ";part=1" : ";name=\"a value\"";
    absl::StrAppend(&chunks, "\r\n", body.substr(begin, size), "\r\n");
    begin += size;
  }
  absl::StrAppend(&chunks, "0\r\n", random.Chance(0.3) ? "X-Sum: 1\r\nX-More: 2\r\n" : "", "\r\n");
  return chunks;
}

Http1Request DrawHttp1Request(Random& random) {
  Http1Request request;
  request.kind = static_cast<Http1Kind>(random.Below(kHttp1Kinds));
  std::string line = LineOf(request.kind);
  std::string fields = "Host: front\r\n";
  if (random.Chance(0.3))
    absl::StrAppend(&fields, "X-Pad: ", std::string(static_cast<size_t>(random.Below(200)), 'p'), "\r\n");
  request.closes = random.Chance(0.05);
  if (request.closes) fields += "Connection: close\r\n";
  if (request.kind == Http1Kind::kSized || request.kind == Http1Kind::kHead) {
    const int64_t size = DrawSize(random);
    absl::StrAppend(&line, size);
    request.is_small = size <= kMaxSmallBody;
    request.expected = SizedText(size);
  } else {
    request.expected = DrawBody(request.kind, random);
    request.is_chunked = random.Chance(0.4);
    if (request.is_chunked) {
      request.body = InChunks(request.expected, random);
      fields += "Transfer-Encoding: chunked\r\n";
    } else {
      request.body = request.expected;
      absl::StrAppend(&fields, "Content-Length: ", request.body.size(), "\r\n");
    }
    if (IsGrpcWeb(request.kind)) fields += "Content-Type: application/grpc-web\r\n";
    request.expects_continue = !request.body.empty() && random.Chance(0.2);
    if (request.expects_continue) fields += "Expect: 100-continue\r\n";
    request.is_small = request.kind == Http1Kind::kEcho && !request.is_chunked &&
                       static_cast<int64_t>(request.body.size()) <= kMaxSmallBody;
  }
  request.head = absl::StrCat(line, " HTTP/1.1\r\n", fields, "\r\n");
  return request;
}

}  // namespace saccade::server::simulation
