#include "server/lifecycle/triton_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server {
namespace {

constexpr char kTls[] = "use --tls-cert and --tls-key, for both gRPC and HTTP";
constexpr char kMutualTls[] = "use --tls-client-ca to require client certificates";
constexpr char kTokens[] = "use --token-file to restrict access";
constexpr char kTraces[] = "spans are exported by OpenTelemetry; set OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr char kNoPlugins[] = "no libraries are loaded from a folder";
constexpr char kNoPools[] = "memory is not kept in pools of a fixed size";
constexpr char kAlwaysEnabled[] = "these metrics are always enabled";
constexpr char kAlwaysOpen[] =
    "both ports are always open and serve both protocols; bind them to 127.0.0.1 with --host";
constexpr char kPings[] =
    "a client may send 100 pings in a second, and one more for each part of an answer, before its connection "
    "is closed";
constexpr char kNoOtherPorts[] = "there is no such port";

struct TritonFlag {
  const char* name;
  // The value that describes what saccaded does anyway, so that it needs no warning; nullptr if there is
  // none.
  const char* accepted_value;
  // What other values do.
  enum Otherwise { kIgnored, kRejected } otherwise;
  // Why, or what to use instead.
  const char* note;
};

constexpr auto kIgnored = TritonFlag::kIgnored;
constexpr auto kRejected = TritonFlag::kRejected;

constexpr TritonFlag kTritonFlags[] = {
    {"model-load-thread-count", nullptr, kIgnored,
     "models that were measured before are loaded at the same time, one for each of `--cores` and at most "
     "16; "
     "others, and after the start all versions of a model with several, one after the other"},
    {"model-load-retry-count", "0", kIgnored,
     "a load that fails at start or by poll is tried nine times in all"},
    {"model-namespacing", "false", kRejected, "models have no namespaces"},
    {"model-config-name", nullptr, kRejected, "a model has one configuration, its config.pbtxt"},
    {"allow-http", "true", kRejected, kAlwaysOpen},
    {"reuse-http-port", "false", kRejected, "a port belongs to one daemon"},
    {"http-header-forward-pattern", nullptr, kIgnored, "no backend reads requests' headers"},
    {"http-thread-count", nullptr, kIgnored, "all ports share their threads; use --network-threads"},
    {"http-restricted-api", nullptr, kRejected, kTokens},
    {"http-max-input-size", nullptr, kRejected, "use --max-message-bytes"},
    {"allow-grpc", "true", kRejected, kAlwaysOpen},
    {"reuse-grpc-port", "false", kRejected, "a port belongs to one daemon"},
    {"grpc-header-forward-pattern", nullptr, kIgnored, "no backend reads requests' headers"},
    {"grpc-infer-allocation-pool-size", nullptr, kIgnored, kNoPools},
    {"grpc-max-response-pool-size", nullptr, kIgnored, kNoPools},
    {"grpc-use-ssl", "false", kRejected, kTls},
    {"grpc-use-ssl-mutual", "false", kRejected, kMutualTls},
    {"grpc-server-cert", nullptr, kRejected, kTls},
    {"grpc-server-key", nullptr, kRejected, kTls},
    {"grpc-root-cert", nullptr, kRejected, kMutualTls},
    {"grpc-infer-response-compression-level", "none", kIgnored, "answers over gRPC are not compressed"},
    {"grpc-restricted-protocol", nullptr, kRejected, kTokens},
    {"grpc-http2-max-pings-without-data", "0", kIgnored,
     "the server sends one ping to a client that was silent for --grpc-keepalive-time"},
    {"grpc-http2-min-recv-ping-interval-without-data", nullptr, kIgnored, kPings},
    {"grpc-http2-max-ping-strikes", nullptr, kIgnored, kPings},
    {"log-file", "", kRejected, "logs go to stderr"},
    {"allow-sagemaker", "false", kRejected, kNoOtherPorts},
    {"sagemaker-port", nullptr, kIgnored, kNoOtherPorts},
    {"sagemaker-safe-port-range", nullptr, kIgnored, kNoOtherPorts},
    {"sagemaker-thread-count", nullptr, kIgnored, kNoOtherPorts},
    {"allow-vertex-ai", "false", kRejected, kNoOtherPorts},
    {"vertex-ai-port", nullptr, kIgnored, kNoOtherPorts},
    {"vertex-ai-thread-count", nullptr, kIgnored, kNoOtherPorts},
    {"vertex-ai-default-model", nullptr, kIgnored, kNoOtherPorts},
    {"allow-metrics", "true", kRejected,
     "the port is always open; bind it to 127.0.0.1 with --metrics-address"},
    {"allow-gpu-metrics", "true", kIgnored, kAlwaysEnabled},
    {"allow-cpu-metrics", "true", kIgnored, kAlwaysEnabled},
    {"metrics-interval-ms", nullptr, kIgnored, "metrics are computed at every scrape"},
    {"metrics-config", nullptr, kIgnored,
     "histograms are always enabled; use --latency-buckets for their buckets"},
    {"trace-config", nullptr, kIgnored, kTraces},
    {"trace-file", nullptr, kIgnored, kTraces},
    {"trace-level", "OFF", kIgnored, kTraces},
    {"trace-rate", nullptr, kIgnored, kTraces},
    {"trace-count", nullptr, kIgnored, kTraces},
    {"trace-log-frequency", nullptr, kIgnored, kTraces},
    {"cache-directory", nullptr, kIgnored, kNoPlugins},
    {"backend-directory", nullptr, kIgnored, kNoPlugins},
    {"backend-config", nullptr, kIgnored, "backends have no settings; use a model's parameters"},
    {"repoagent-directory", nullptr, kIgnored, kNoPlugins},
    {"rate-limit", "off", kIgnored, "use 'weight' in a model's parameters for its share of a device"},
    {"rate-limit-resource", nullptr, kIgnored,
     "use 'weight' in a model's parameters for its share of a device"},
    {"pinned-memory-pool-byte-size", nullptr, kIgnored, kNoPools},
    {"cuda-memory-pool-byte-size", nullptr, kIgnored, kNoPools},
    {"cuda-virtual-address-size", nullptr, kIgnored, kNoPools},
    {"min-supported-compute-capability", nullptr, kIgnored, "GPUs are selected by a model's instance_group"},
    {"enable-peer-access", nullptr, kIgnored, "a forward pass uses a single device"},
    {"buffer-manager-thread-count", nullptr, kIgnored, "tensors are copied by the threads that compute"},
    {"host-policy", nullptr, kIgnored, "use 'pin' in a model's parameters to pin its instances to cores"},
    {"model-load-gpu-limit", nullptr, kIgnored, "a model that does not fit fails to load"},
};

// Escapes and shortens a value for use in an error.
std::string Quotable(const std::string& value) { return absl::CHexEscape(value.substr(0, 64)); }

// Triton's spellings of true and false; others are returned in lower case.
std::string Normal(absl::string_view value) {
  if (value == "1") return "true";
  if (value == "0") return "false";
  return absl::AsciiStrToLower(value);
}

// `accepted` is TritonFlag::accepted_value.
bool IsAccepted(absl::string_view accepted, absl::string_view value) {
  const bool is_boolean = accepted == "true" || accepted == "false";
  return value == accepted || (is_boolean && Normal(value) == accepted);
}

void CheckValue(const TritonFlag& flag, const std::string& value, std::vector<std::string>* warnings) {
  if (flag.accepted_value != nullptr && IsAccepted(flag.accepted_value, value)) return;
  const std::string name = absl::StrCat("--", flag.name);
  if (flag.otherwise == kRejected) {
    throw CLI::ValidationError(
        name, absl::StrCat("is '", Quotable(value), "', which is not supported by saccaded: ", flag.note));
  }
  warnings->push_back(absl::StrCat(name, " is ignored: ", flag.note));
}

}  // namespace

void AddTritonFlags(CLI::App& app, std::vector<std::string>* warnings) {
  for (const TritonFlag& flag : kTritonFlags) {
    const auto take = [&flag, warnings](const std::vector<std::string>& values) {
      for (const std::string& value : values) CheckValue(flag, value, warnings);
    };
    // Some of Triton's flags may be repeated; each occurrence has one value.
    app.add_option_function<std::vector<std::string>>(absl::StrCat("--", flag.name), take)
        ->allow_extra_args(false)
        ->group("");
  }
}

}  // namespace saccade::server
