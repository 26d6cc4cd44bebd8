#include "client/cpp/connection_failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status.h"
#include "client/cpp/untrusted.h"

namespace saccade::client {
namespace {

// `message` is gRPC's; empty if it adds nothing to `what`.
absl::Status Untrusted(const std::string& what, const std::string& message = "") {
  absl::Status status =
      absl::UnavailableError(message.empty() ? what : absl::StrCat(what, " (", message, ")"));
  SetUntrusted(status);
  return status;
}

std::string NameOf(const ClientOptions& options, const Target& target) {
  if (!options.tls->server_name.empty()) return options.tls->server_name;
  return target.host_port.empty() ? options.url : target.host_port.substr(0, target.host_port.rfind(':'));
}

absl::Status ExplainTls(const ClientOptions& options, const Target& target, const std::string& message) {
  if (absl::StrContains(message, "not in peer certificate")) {
    return Untrusted(absl::StrCat("the certificate of ", options.url, " is not for the name '",
                                  NameOf(options, target), "'"));
  }
  if (absl::StrContains(message, "wrong version number")) {
    return Untrusted(absl::StrCat("the server at ", options.url, " does not speak TLS"), message);
  }
  if (absl::StrContains(message, "annot check peer")) {
    return Untrusted(absl::StrCat("the server at ", options.url, " speaks TLS but not gRPC"), message);
  }
  if (!absl::StrContains(message, "certificate verify failed")) {
    return Untrusted(absl::StrCat("the TLS handshake with ", options.url, " failed"), message);
  }
  const std::string why =
      target.host_port.empty() ? "" : WhyUntrusted(target.host_port, options.tls->authorities);
  const std::string untrusted = absl::StrCat("the certificate of ", options.url, " is not trusted: ");
  if (!why.empty()) return Untrusted(absl::StrCat(untrusted, why));
  return Untrusted(absl::StrCat(untrusted, "it is not signed by a trusted authority, or it is not valid now"),
                   message);
}

}  // namespace

absl::Status ExplainConnection(const ClientOptions& options, const Target& target,
                               const std::string& message) {
  if (options.tls &&
      (absl::StrContains(message, "andshake failed") || absl::StrContains(message, "annot check peer") ||
       absl::StrContains(message, "not in peer certificate"))) {
    return ExplainTls(options, target, message);
  }
  // The only sign of a daemon that requires TLS or a client certificate: it closes the connection before any
  // data was exchanged.
  if (absl::StrContains(message, "Socket closed") || absl::StrContains(message, "onnection reset")) {
    return absl::UnavailableError(absl::StrCat(
        "the server at ", options.url, " closed the connection at once; it may be shutting down, or require ",
        !options.tls ? "TLS" : "another client certificate", " (", message, ")"));
  }
  absl::Status status =
      absl::UnavailableError(absl::StrCat("no daemon answers at ", options.url, " (", message, ")"));
  SetUnreachable(status);
  return status;
}

}  // namespace saccade::client
