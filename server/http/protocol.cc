#include "server/http/protocol.h"

#include <httplib.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/routes.h"

namespace saccade::server {
namespace {

// The connection, as the library wants to see it.
class ConnectionStream final : public httplib::Stream {
 public:
  explicit ConnectionStream(Connection& connection) : connection_(connection) {}

  bool is_readable() const override { return !connection_.broken(); }
  bool is_writable() const override { return !connection_.broken(); }
  ssize_t read(char* to, size_t size) override { return connection_.Read(to, size); }
  ssize_t write(const char* from, size_t size) override {
    return connection_.Write(absl::string_view(from, size)) ? static_cast<ssize_t>(size) : -1;
  }
  // Of no use to any handler.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  // Told a number, the library refuses every descriptor above 1023, for the sake of select().
  socket_t socket() const override { return -1; }

 private:
  Connection& connection_;
};

RequestHead HeadOf(const httplib::Request& request) {
  RequestHead head;
  head.method = request.method;
  head.path = request.path;
  const auto [begin, end] = request.headers.equal_range("Content-Length");
  for (auto it = begin; it != end; ++it) head.content_lengths.push_back(it->second);
  head.has_transfer_encoding = request.has_header("Transfer-Encoding");
  head.has_content_encoding = request.has_header("Content-Encoding");
  return head;
}

void Fill(const HttpResponse& from, httplib::Response& to) {
  to.status = from.status;
  to.set_content(from.body, from.content_type);
}

std::string ReasonOf(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

// Uses the library's parser and writer alone: its sockets share ports, its accept loop ends at an aborted
// connection, and its timeouts begin anew with every byte.
class Protocol::Engine final : private httplib::Server {
 public:
  Engine(const HttpServerOptions& options, Routes routes) : routes_(std::move(routes)) {
    set_payload_max_length(options.max_body_bytes);
    set_keep_alive_max_count(static_cast<size_t>(options.max_requests_per_connection));
    set_keep_alive_timeout(absl::ToInt64Seconds(options.idle_timeout));
    set_pre_routing_handler(
        [this](const auto& request, auto& response) { return BeforeBody(request, response); });
    Post("/.*", [this](const auto& request, auto& response) { Fill(Handle(request), response); });
    set_expect_100_continue_handler([this](const auto& request, auto& response) {
      auto refusal = routes_.Refusal(HeadOf(request));
      if (!refusal) return 100;
      Fill(*refusal, response);
      return response.status;
    });
    // Only the library's own errors come without a type.
    set_error_handler(HandlerWithResponse([](const httplib::Request&, httplib::Response& response) {
      const char* text =
          response.status == 414 ? "the path is too long" : "not a well-formed HTTP/1.1 request";
      if (!response.has_header("Content-Type")) Fill(HttpError(response.status, text), response);
      return HandlerResponse::Handled;
    }));
  }

  bool Answer(Connection& connection, bool last) {
    ConnectionStream stream(connection);
    bool parsed = false;
    bool refused = false;
    bool client_closes = false;
    const bool answered = process_request(stream, last, client_closes, [&](httplib::Request& request) {
      parsed = true;
      refused = routes_.Refusal(HeadOf(request)).has_value();
      Prepare(request, refused);
    });
    return parsed && answered && !refused && !client_closes && !last && !connection.broken();
  }

 private:
  static void Prepare(httplib::Request& request, bool refused) {
    // Parts of an answer are of no use here, and many small ones make a large answer.
    request.ranges.clear();
    // The library would take a form to pieces; handlers get the body as it was sent.
    request.headers.erase("Content-Type");
    if (!refused) return;
    // Its body, if any, stays unread, so what follows is no request.
    request.headers.erase("Connection");
    request.set_header("Connection", "close");
  }

  HandlerResponse BeforeBody(const httplib::Request& request, httplib::Response& response) {
    if (auto refusal = routes_.Refusal(HeadOf(request))) {
      Fill(*refusal, response);
    } else if (request.method == "POST") {
      return HandlerResponse::Unhandled;
    } else {
      Fill(Handle(request), response);
    }
    return HandlerResponse::Handled;
  }

  HttpResponse Handle(const httplib::Request& request) const {
    return routes_.Handle({request.method, request.path, request.body});
  }

  const Routes routes_;
};

absl::StatusOr<std::unique_ptr<Protocol>> Protocol::Create(const HttpServerOptions& options,
                                                           std::vector<HttpRoute> routes) {
  auto table = Routes::Create(std::move(routes), options.max_body_bytes);
  if (!table.ok()) return table.status();
  return std::unique_ptr<Protocol>(new Protocol(std::make_unique<Engine>(options, *std::move(table))));
}

Protocol::Protocol(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

Protocol::~Protocol() = default;

bool Protocol::Answer(Connection& connection, bool last) { return engine_->Answer(connection, last); }

void Protocol::Refuse(Connection& connection, const HttpResponse& response) {
  connection.Write(absl::StrCat("HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
                                response.status == 503 ? "\r\nRetry-After: 1" : "",
                                "\r\nConnection: close\r\nContent-Type: ", response.content_type,
                                "\r\nContent-Length: ", response.body.size(), "\r\n\r\n", response.body));
}

}  // namespace saccade::server
