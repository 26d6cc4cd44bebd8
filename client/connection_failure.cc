#include "client/connection_failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/status.h"
#include "client/untrusted.h"

namespace saccade::client {
namespace {

absl::Status Untrusted(absl::string_view what, const std::string& message) {
  absl::Status status = absl::UnavailableError(absl::StrCat(what, " (", message, ")"));
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
                                  NameOf(options, target), "'"),
                     message);
  }
  if (absl::StrContains(message, "wrong version number")) {
    return Untrusted(absl::StrCat("what answers at ", options.url, " speaks no TLS"), message);
  }
  std::string why;
  if (absl::StrContains(message, "certificate verify failed") && !target.host_port.empty()) {
    why = WhyUntrusted(target.host_port, options.tls->authorities);
  }
  return Untrusted(
      absl::StrCat("the certificate of ", options.url, " is not trusted: ",
                   why.empty() ? "no authority given has signed it, or it is not valid now" : why),
      message);
}

}  // namespace

absl::Status ExplainConnection(const ClientOptions& options, const Target& target,
                               const std::string& message) {
  if (options.tls && (absl::StrContains(message, "andshake failed") ||
                      absl::StrContains(message, "not in peer certificate"))) {
    return ExplainTls(options, target, message);
  }
  // All that a daemon shows of what it misses: it hangs up before anything was said.
  if (absl::StrContains(message, "Socket closed") || absl::StrContains(message, "onnection reset")) {
    return absl::UnavailableError(absl::StrCat(
        "what answers at ", options.url, " ended the connection at once; it may be ending, or want ",
        !options.tls ? "TLS" : "another certificate of its client", " (", message, ")"));
  }
  absl::Status status =
      absl::UnavailableError(absl::StrCat("no daemon answers at ", options.url, " (", message, ")"));
  SetUnreachable(status);
  return status;
}

}  // namespace saccade::client
