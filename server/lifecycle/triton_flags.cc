#include "server/lifecycle/triton_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace saccade::server {
namespace {

constexpr char kTls[] = "use --tls-cert and --tls-key, for both gRPC and HTTP";
constexpr char kMutualTls[] = "use --tls-client-ca to require client certificates";
constexpr char kTokens[] = "use --token-file to restrict access";
constexpr char kNoTraces[] = "tracing is configured by OpenTelemetry's OTEL_* environment variables";
constexpr char kNoLibraries[] = "no libraries are loaded from a folder";
constexpr char kNoPools[] = "memory is not kept in pools of a fixed size";
constexpr char kAlwaysThere[] = "these metrics are always enabled";
constexpr char kNoOtherPorts[] = "there is no such port";

struct TritonFlag {
  const char* name;
  // The value that is accepted silently; nullptr if there is none.
  const char* harmless;
  bool refused;
  const char* note;
};

constexpr bool kPassedOver = false;
constexpr bool kRefused = true;

constexpr TritonFlag kFlags[] = {
    {"id", nullptr, kPassedOver, "the server's name is always saccade"},
    {"model-load-thread-count", nullptr, kPassedOver, "models are loaded one after the other"},
    {"model-load-retry-count", "0", kPassedOver, "loading a model is retried when its files change"},
    {"model-namespacing", "false", kRefused, "models have no namespaces"},
    {"model-config-name", nullptr, kRefused, "a model has one configuration, its config.pbtxt"},
    {"allow-http", "true", kRefused, "the port is always open; bind it to 127.0.0.1 with --http-address"},
    {"reuse-http-port", "false", kRefused, "a port belongs to one daemon"},
    {"http-header-forward-pattern", nullptr, kPassedOver, "no backend reads requests' headers"},
    {"http-thread-count", nullptr, kPassedOver, "each connection has a thread; use --max-http-connections"},
    {"http-restricted-api", nullptr, kRefused, kTokens},
    {"http-max-input-size", nullptr, kRefused, "use --max-message-bytes"},
    {"allow-grpc", "true", kRefused, "the port is always open; bind it to 127.0.0.1 with --grpc-address"},
    {"reuse-grpc-port", "false", kRefused, "a port belongs to one daemon"},
    {"grpc-header-forward-pattern", nullptr, kPassedOver, "no backend reads requests' headers"},
    {"grpc-infer-allocation-pool-size", nullptr, kPassedOver, kNoPools},
    {"grpc-max-response-pool-size", nullptr, kPassedOver, kNoPools},
    {"grpc-use-ssl", "false", kRefused, kTls},
    {"grpc-use-ssl-mutual", "false", kRefused, kMutualTls},
    {"grpc-server-cert", nullptr, kRefused, kTls},
    {"grpc-server-key", nullptr, kRefused, kTls},
    {"grpc-root-cert", nullptr, kRefused, kMutualTls},
    {"grpc-infer-response-compression-level", "none", kPassedOver, "answers over gRPC are not compressed"},
    {"grpc-restricted-protocol", nullptr, kRefused, kTokens},
    {"log-file", "", kRefused, "logs go to stderr"},
    {"allow-sagemaker", "false", kRefused, kNoOtherPorts},
    {"sagemaker-port", nullptr, kPassedOver, kNoOtherPorts},
    {"sagemaker-safe-port-range", nullptr, kPassedOver, kNoOtherPorts},
    {"sagemaker-thread-count", nullptr, kPassedOver, kNoOtherPorts},
    {"allow-vertex-ai", "false", kRefused, kNoOtherPorts},
    {"vertex-ai-port", nullptr, kPassedOver, kNoOtherPorts},
    {"vertex-ai-thread-count", nullptr, kPassedOver, kNoOtherPorts},
    {"vertex-ai-default-model", nullptr, kPassedOver, kNoOtherPorts},
    {"allow-metrics", "true", kRefused,
     "the port is always open; bind it to 127.0.0.1 with --metrics-address"},
    {"allow-gpu-metrics", "true", kPassedOver, kAlwaysThere},
    {"allow-cpu-metrics", "true", kPassedOver, kAlwaysThere},
    {"metrics-interval-ms", nullptr, kPassedOver, "metrics are computed at every scrape"},
    {"metrics-config", nullptr, kPassedOver, "histograms are always enabled, with fixed buckets"},
    {"trace-config", nullptr, kPassedOver, kNoTraces},
    {"trace-file", nullptr, kPassedOver, kNoTraces},
    {"trace-level", "OFF", kPassedOver, kNoTraces},
    {"trace-rate", nullptr, kPassedOver, kNoTraces},
    {"trace-count", nullptr, kPassedOver, kNoTraces},
    {"trace-log-frequency", nullptr, kPassedOver, kNoTraces},
    {"cache-directory", nullptr, kPassedOver, kNoLibraries},
    {"backend-directory", nullptr, kPassedOver, kNoLibraries},
    {"backend-config", nullptr, kPassedOver, "backends have no settings; use a model's parameters"},
    {"repoagent-directory", nullptr, kPassedOver, kNoLibraries},
    {"rate-limit", "off", kPassedOver, "use 'weight' in a model's parameters for its share of a device"},
    {"rate-limit-resource", nullptr, kPassedOver,
     "use 'weight' in a model's parameters for its share of a device"},
    {"pinned-memory-pool-byte-size", nullptr, kPassedOver, kNoPools},
    {"cuda-memory-pool-byte-size", nullptr, kPassedOver, kNoPools},
    {"cuda-virtual-address-size", nullptr, kPassedOver, kNoPools},
    {"min-supported-compute-capability", nullptr, kPassedOver,
     "GPUs are selected by a model's instance_group"},
    {"enable-peer-access", nullptr, kPassedOver, "a forward pass uses a single device"},
    {"buffer-manager-thread-count", nullptr, kPassedOver, "tensors are copied by the threads that compute"},
    {"host-policy", nullptr, kPassedOver, "use 'pin' in a model's parameters to pin its instances to cores"},
    {"model-load-gpu-limit", nullptr, kPassedOver, "a model that does not fit fails to load"},
};

// Escapes and shortens a value for use in an error.
std::string Shown(const std::string& value) { return absl::CHexEscape(value.substr(0, 64)); }

void Take(const TritonFlag& flag, const std::string& value, std::vector<std::string>* warnings) {
  if (flag.harmless != nullptr && value == flag.harmless) return;
  const std::string name = absl::StrCat("--", flag.name);
  if (flag.refused) {
    throw CLI::ValidationError(
        name, absl::StrCat("is '", Shown(value), "', which is not supported by saccaded: ", flag.note));
  }
  warnings->push_back(absl::StrCat(name, " is ignored: ", flag.note));
}

}  // namespace

void AddTritonFlags(CLI::App& app, std::vector<std::string>* warnings) {
  for (const TritonFlag& flag : kFlags) {
    const auto take = [&flag, warnings](const std::vector<std::string>& values) {
      for (const std::string& value : values) Take(flag, value, warnings);
    };
    // Some of Triton's flags may be repeated; each occurrence has one value.
    app.add_option_function<std::vector<std::string>>(absl::StrCat("--", flag.name), take)
        ->allow_extra_args(false)
        ->group("");
  }
}

}  // namespace saccade::server
