#include "server/http/http_message.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace saccade::server {

std::optional<absl::string_view> HttpRequest::Header(absl::string_view name) const {
  return FindHeader(headers, name);
}

HttpHandler Responding(std::function<HttpResponse(const HttpRequest&)> handle) {
  return [handle = std::move(handle)](const std::shared_ptr<const HttpRequest>& request,
                                      const HttpReply& reply) { reply(handle(*request)); };
}

HttpResponse HttpError(int status, absl::string_view message) {
  const nlohmann::json body = {{"error", std::string(message)}};
  // The message may quote bytes of a client.
  HttpResponse response = {status, "application/json",
                           body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
  response.compressible = false;
  return response;
}

absl::string_view HttpReason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

}  // namespace saccade::server
