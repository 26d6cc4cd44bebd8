#include "server/lifecycle/front_flags.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/security/exposure.h"

namespace saccade::server {
namespace {

constexpr int kMaxNetworkThreads = 64;
constexpr int64_t kMaxConnections = 1'000'000;
constexpr int64_t kMaxHealthWatches = 1'000'000;
constexpr size_t kDefaultConnections = 16384;
// Descriptors for everything but the connections to the gRPC and HTTP ports.
constexpr uint64_t kOtherFiles = 512;
constexpr size_t kMinConnections = 64;
constexpr double kMinSeconds = 0.1;
constexpr double kMaxSeconds = 86400;

template <typename T>
void AddNumber(CLI::App& app, const std::string& name, T& value, int64_t min, int64_t max,
               const std::string& help) {
  app.add_option(name, value, help)
      ->check(CLI::Range(min, max).description(""))
      ->capture_default_str()
      ->type_name("N");
}

void AddTimeout(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help) {
  const auto check = [](const std::string& text) -> std::string {
    double seconds = 0;
    if (absl::SimpleAtod(text, &seconds) && seconds >= kMinSeconds && seconds <= kMaxSeconds) return "";
    return absl::StrCat("Value ", text, " not in range ", kMinSeconds, " to ", kMaxSeconds);
  };
  app.add_option_function<double>(
         name, [&value](const double& seconds) { value = absl::Seconds(seconds); }, help)
      ->check(CLI::Validator(check, ""))
      ->type_name("S")
      ->default_str(absl::StrCat(absl::ToDoubleSeconds(value)));
}

// Names are compared in lower case and without a port. Returns an error message, or "".
std::string ReadHosts(const std::vector<std::string>& names, std::vector<std::string>* hosts) {
  hosts->clear();
  for (const std::string& name : names) {
    if (name.empty() || name.find_first_of("/ ,:") != std::string::npos || name.back() == '.') {
      return absl::StrCat("is '", name,
                          "', expected a host name such as models.example.org, without a port and without a "
                          "dot at its end, or *");
    }
    hosts->push_back(absl::AsciiStrToLower(name));
  }
  return "";
}

}  // namespace

void AddFrontFlags(CLI::App& app, FrontFlags* flags) {
  HttpLimits& limits = flags->limits;
  AddNumber(app, "--network-threads", flags->network_threads, 0, kMaxNetworkThreads,
            "Threads that serve connections, at most one for each core; 0 means a quarter of the cores, from "
            "2 to 4");
  AddNumber(app, "--max-connections", flags->max_connections, 0, kMaxConnections,
            "Maximum open connections to the gRPC and HTTP ports; 0 means as many as the limit of open files "
            "allows, at most 16384");
  AddNumber(app, "--max-connections-per-address", flags->max_connections_per_address, 1, kMaxConnections,
            "Maximum open connections from one address; an IPv6 address counts by its first 64 bits");
  AddNumber(app, "--max-handshakes-per-second", flags->max_handshakes_per_second, 1, kMaxConnections,
            "Maximum connections with TLS that one address may open in a second, averaged, and "
            "--max-connections-per-address at once; loopback addresses are not bound by it");
  AddNumber(app, "--max-streams-per-connection", limits.max_streams, 1, 100'000,
            "Maximum open calls on one HTTP/2 connection");
  AddNumber(app, "--max-resets-per-second", limits.max_resets_per_second, 1, 1'000'000,
            "Maximum calls that one HTTP/2 connection may cancel in a second before it is closed");
  AddNumber(app, "--max-health-watches", flags->max_health_watches, 0, kMaxHealthWatches,
            "Open calls of Watch, gRPC's health service, on the gRPC and HTTP ports that need none of "
            "--max-inflight-bytes; more are charged to it");
  AddNumber(app, "--max-health-watches-per-client", flags->max_health_watches_per_client, 0,
            kMaxHealthWatches, "As many of one client");
  AddNumber(app, "--max-head-bytes", limits.max_head_bytes, 1024, 1 << 20,
            "Maximum size of a request's path and headers");
  AddTimeout(app, "--head-timeout-seconds", limits.head_timeout,
             "How long a client may take to send a request's headers");
  AddTimeout(
      app, "--idle-timeout-seconds", limits.idle_timeout,
      "How long a connection may be open without a request; up to a tenth longer, so that connections that "
      "became idle together are not closed together");
  AddNumber(
      app, "--min-transfer-rate", limits.min_bytes_per_second, 1, 1 << 30,
      "Bytes per second that a client has to send of its message, and read of its answer, after a grace "
      "time");
  const auto hosts = [flags](const std::vector<std::string>& names) {
    const std::string wrong = ReadHosts(names, &flags->allowed_hosts);
    if (!wrong.empty()) throw CLI::ValidationError("--allowed-hosts", wrong);
  };
  app.add_option_function<std::vector<std::string>>(
         "--allowed-hosts", hosts,
         "Host name under which clients of REST, gRPC-web and the page may reach the server, without the "
         "port, "
         "and from whose pages browsers may ask; may be repeated, '*' allows all. Numeric addresses are "
         "always allowed, and localhost on the same machine. Without this flag nothing else is allowed if "
         "the "
         "ports listen on loopback addresses, and all names otherwise")
      ->allow_extra_args(false)
      ->type_name("NAME");
}

std::vector<std::string> AllowedHosts(const FrontFlags& flags, const std::vector<std::string>& addresses) {
  if (!flags.allowed_hosts.empty()) return flags.allowed_hosts;
  if (std::all_of(addresses.begin(), addresses.end(), IsLoopback)) return {};
  return {"*"};
}

int NetworkThreads(const FrontFlags& flags, int cores) {
  const int wanted = flags.network_threads > 0 ? flags.network_threads : std::clamp(cores / 4, 2, 4);
  return std::max(1, std::min(wanted, cores));
}

size_t MaxConnections(const FrontFlags& flags, uint64_t max_files) {
  if (flags.max_connections > 0) return static_cast<size_t>(flags.max_connections);
  const uint64_t left = max_files > kOtherFiles ? max_files - kOtherFiles : 0;
  return std::clamp(static_cast<size_t>(left), kMinConnections, kDefaultConnections);
}

}  // namespace saccade::server
