#include "server/http/protocol.h"

#include <string>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/content_coding.h"

namespace saccade::server {
namespace {

// Less is not worth anybody's time.
constexpr size_t kMinEncoded = 256;

std::vector<absl::string_view> PiecesOf(const HttpResponse& response) {
  std::vector<absl::string_view> pieces = {response.body};
  for (const BytePieces& attached : response.attached) {
    for (const std::string_view piece : attached.pieces()) pieces.emplace_back(piece.data(), piece.size());
  }
  return pieces;
}

size_t SizeOf(const HttpResponse& response) {
  size_t size = 0;
  for (const absl::string_view piece : PiecesOf(response)) size += piece.size();
  return size;
}

void EncodeFor(const RequestHead& head, HttpResponse& response) {
  const auto accepted = FindHeader(head.headers, "Accept-Encoding");
  const auto coding = accepted ? AcceptedCoding(*accepted) : ContentCoding::kIdentity;
  if (coding == ContentCoding::kIdentity || SizeOf(response) < kMinEncoded) return;
  response.body = Encode(coding, PiecesOf(response));
  response.attached.clear();
  response.headers.emplace_back("Content-Encoding", std::string(NameOf(coding)));
  response.headers.emplace_back("Vary", "Accept-Encoding");
}

// Head and body in one call of the system where they fit: apart, the second would wait for the first one's
// acknowledgement.
bool Write(Connection& connection, const HttpResponse& response, bool close, bool with_body) {
  std::string head = absl::StrCat("HTTP/1.1 ", response.status, " ", HttpReason(response.status), "\r\n");
  for (const auto& [name, value] : response.headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  absl::StrAppend(&head, "Content-Type: ", response.content_type, "\r\nContent-Length: ", SizeOf(response),
                  close ? "\r\nConnection: close\r\n\r\n" : "\r\nConnection: keep-alive\r\n\r\n");
  std::vector<absl::string_view> pieces = {head};
  if (with_body) {
    const std::vector<absl::string_view> body = PiecesOf(response);
    pieces.insert(pieces.end(), body.begin(), body.end());
  }
  return connection.Write(pieces);
}

// Nothing, if the client need not be told to go on, or was.
std::optional<HttpResponse> Continue(Connection& connection, const RequestHead& head) {
  const auto expected = FindHeader(head.headers, "Expect");
  if (!expected) return std::nullopt;
  if (!absl::EqualsIgnoreCase(*expected, "100-continue")) {
    return HttpError(417, "this Expect is not known; expected 100-continue, or none");
  }
  // Its body is on its way already.
  if (!head.has_body() || !connection.Fetched().empty()) return std::nullopt;
  const absl::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  connection.Write({&go_on, 1});
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Protocol>> Protocol::Create(const HttpServerOptions& options,
                                                           std::vector<HttpRoute> routes) {
  auto table = Routes::Create(std::move(routes));
  if (!table.ok()) return table.status();
  return std::unique_ptr<Protocol>(new Protocol(options, *std::move(table)));
}

std::optional<HttpResponse> Protocol::RefuseBody(const RequestHead& head) const {
  const auto coding = FindHeader(head.headers, "Content-Encoding");
  if (coding && !ContentCodingOf(*coding)) {
    return HttpError(415, "this Content-Encoding is not known; send gzip, deflate, or the body as it is");
  }
  if (head.has_body() && head.method != "POST") {
    return HttpError(400, absl::StrCat(head.method.substr(0, 20), " takes no body"));
  }
  if (head.content_length.value_or(0) > max_body_bytes_) {
    return BodyTooLarge(absl::StrCat(*head.content_length), max_body_bytes_);
  }
  return std::nullopt;
}

HttpResponse Protocol::ReadAndHandle(Connection& connection, RequestParser& parser, Routes::Match match,
                                     bool* whole) {
  const RequestHead& head = parser.head();
  *whole = !head.has_body();
  if (guard_) {
    if (auto refusal = guard_(HandledMethod(head.method), match.route, head.headers))
      return *std::move(refusal);
  }
  if (auto refusal = RefuseBody(head)) return *std::move(refusal);
  if (auto refusal = Continue(connection, head)) return *std::move(refusal);
  const auto body = std::make_shared<RequestBody>(room_, max_body_bytes_);
  const auto coding = FindHeader(head.headers, "Content-Encoding");
  auto error = body->Read(connection, parser, coding ? *ContentCodingOf(*coding) : ContentCoding::kIdentity);
  if (error) return *std::move(error);
  *whole = true;
  HttpRequest request;
  request.method = head.method;
  request.path = head.path;
  request.query = head.query;
  request.body = body->bytes();
  request.body_owner = body;
  request.headers = &head.headers;
  request.path_values = std::move(match.path_values);
  request.client = &connection;
  return Handle(*match.handler, request);
}

bool Protocol::Answer(Connection& connection, bool last) {
  RequestParser parser;
  auto malformed = parser.ReadHead(connection.Head());
  connection.DropHead();
  if (malformed) {
    Refuse(connection, *malformed);
    return false;
  }
  const RequestHead& head = parser.head();
  auto found = routes_.Find(head);
  // Whether what the client sends next is a request.
  bool whole = !head.has_body();
  HttpResponse response =
      std::holds_alternative<HttpResponse>(found)
          ? std::get<HttpResponse>(std::move(found))
          : ReadAndHandle(connection, parser, std::get<Routes::Match>(std::move(found)), &whole);
  EncodeFor(head, response);
  const bool close = last || !whole || !head.keep_alive;
  return Write(connection, response, close, head.method != "HEAD") && !close;
}

void Protocol::Refuse(Connection& connection, const HttpResponse& response) {
  Write(connection, response, true, true);
}

}  // namespace saccade::server
