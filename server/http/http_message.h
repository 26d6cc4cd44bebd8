// An HTTP request as handlers see it, and what they answer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// In the order in which they came or go.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Names are compared without case; of several of the same name it is the first.
std::optional<absl::string_view> FindHeader(const HttpHeaders& headers, absl::string_view name);

// The client of a request, to be asked by its handler alone, but for Done.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Its address without the port: "127.0.0.1", "::1"; empty if unknown.
  virtual std::string Address() const = 0;

  // Blocks until Done. Calls `gone`, once, if the client closes its connection meanwhile, and goes on
  // waiting. Whoever only ends its own direction counts as gone.
  virtual void AwaitDone(absl::FunctionRef<void()> gone) = 0;

  // Ends AwaitDone, also one that comes later; once for each, from any thread.
  virtual void Done() = 0;
};

// Valid during the handler's call alone, but for its body.
struct HttpRequest {
  absl::string_view method;
  // Without the query, as it was sent.
  absl::string_view path;
  // What stands behind '?', as it was sent.
  absl::string_view query;
  // Without the codings that it was sent in, chunks and compression. `body_owner` keeps it alive beyond the
  // call.
  absl::string_view body;
  std::shared_ptr<const void> body_owner;
  const HttpHeaders* headers = nullptr;
  // What stands in the path for each {name} of the route; decoded, never empty.
  std::map<std::string, std::string> path_values;
  HttpClient* client = nullptr;

  std::optional<absl::string_view> Header(absl::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  // Stand behind `body`. They are not copied on their way out, unless the client takes them compressed.
  std::vector<BytePieces> attached = {};
  // Beside those that say how the body is sent. Neither names nor values hold line ends.
  HttpHeaders headers = {};
};

// {"error": message} with `status`; `message` may hold any bytes.
HttpResponse HttpError(int status, absl::string_view message);

// "Not Found" of 404; empty if nobody ever named the status.
absl::string_view HttpReason(int status);

}  // namespace saccade::server
