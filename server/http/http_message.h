// An HTTP request as route handlers see it, and their response.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/byte_pieces.h"
#include "server/core/cancellation.h"
#include "server/http/http_headers.h"

namespace saccade::server {

// Held by shared pointers; valid, with the body that it refers to, as long as one of them exists.
struct HttpRequest {
  std::string method;
  // Without the query, as it was sent.
  std::string path;
  // What follows '?', as it was sent.
  std::string query;
  HttpHeaders headers;
  // Decompressed. `body_owner` keeps it, and what the front charged for it, alive beyond the request.
  absl::string_view body;
  std::shared_ptr<const void> body_owner;
  // Size of the body as it was sent, if it was compressed.
  std::optional<size_t> compressed_bytes = std::nullopt;
  // The decoded text for each {name} of the route; never empty.
  std::map<std::string, std::string> path_values;
  // See Caller.
  std::string client;
  std::string address;
  // When all of its body was there, as Loop::Now() tells. The request may wait for a work pool after that.
  absl::Time arrival;
  // Raised when the client has gone; never null for requests that came over the network.
  std::shared_ptr<Cancellation> cancellation;

  std::optional<absl::string_view> Header(absl::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  // Follow `body`. They are sent without copying, unless the client takes them compressed.
  std::vector<BytePieces> attached = {};
  // Sent beside those that describe the body. Neither names nor values contain line ends.
  HttpHeaders headers = {};
  // Whether a client that accepts compressed responses gets this one compressed.
  bool compressible = true;
  // Lives until the response was sent, compressed or not; for example the charge of a large answer. May be
  // null.
  std::shared_ptr<const void> kept = nullptr;
  // Whether the handler has charged `body` to the ledger, by `kept`. Otherwise the front does.
  bool is_charged = false;
  // False: no Content-Length is sent, because the length is not known. Only for HEAD, which gets no content.
  bool has_length = true;
};

// Sends the response. Call it exactly once, on any thread. Dropped if the client has gone.
using HttpReply = std::function<void(HttpResponse response)>;

// Called on an event loop's thread, or on a work pool's if the route may block, the body was compressed, or
// more than a few bytes of it are parsed. An exception becomes a 500 without the exception's text.
using HttpHandler = std::function<void(std::shared_ptr<const HttpRequest> request, HttpReply reply)>;

// A handler that responds with `handle`'s result.
HttpHandler Responding(std::function<HttpResponse(const HttpRequest&)> handle);

// Returns how many bytes of a request's body its handler parses, or more if the handler copies bytes that the
// body only names. Called on an event loop's thread, and on those of the pools.
using HttpBytesToParse = size_t (*)(const HttpHeaders& headers, absl::string_view body);

// Looks at a request without its body. Returns the response if that is decided already.
using HttpHeadCheck = std::function<std::optional<HttpResponse>(const HttpRequest& request)>;

struct HttpRoute {
  // "GET" (which also answers HEAD) or "POST".
  std::string method;
  // Begins with '/'; a segment {name} takes any text but an empty one. Of two routes that fit a path, the one
  // whose fixed segments come first is taken.
  std::string path;
  HttpHandler handler;
  // Handlers that block or compute for long run on the work pool.
  bool may_block = false;
  // Null if the handler parses the whole body. Up to a mebibyte that is not parsed does not move the handler
  // to a pool, so it must not go through those bytes, other than to copy them.
  HttpBytesToParse bytes_to_parse = nullptr;
  // Called for clients that wait for a 100 (Continue) before they send the body, on an event loop's thread:
  // must not block. The handler checks the same for the others. Null: the head alone decides nothing.
  HttpHeadCheck check_head = nullptr;
};

// {"error": message} with `status`, not compressed: some clients decompress only successful responses. Bytes
// of `message` that are not UTF-8 are replaced.
HttpResponse HttpError(int status, absl::string_view message);

// "Not Found" for 404; empty for unknown statuses.
absl::string_view HttpReason(int status);

}  // namespace saccade::server
