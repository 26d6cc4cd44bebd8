// The daemon's command line, environment and configuration file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/decode/picture_header.h"
#include "server/lifecycle/security_flags.h"
#include "server/logging/log.h"
#include "server/pipeline/catalog.h"

namespace saccade::server {

struct Flags {
  std::vector<std::string> model_repositories;
  std::string host = "0.0.0.0";
  // In place of `host`; of the metrics, in place of the HTTP port's.
  std::optional<std::string> grpc_host;
  std::optional<std::string> http_host;
  std::optional<std::string> metrics_host;
  SecurityFlags security;
  // Triton's ports. 0 picks a free one.
  int grpc_port = 8001;
  int http_port = 8000;
  int metrics_port = 8002;
  // What gRPC's transport is told in place of the daemon's own settings, by gRPC's names.
  std::map<std::string, int> grpc_arguments;
  // Each has a thread while it is open.
  int max_http_connections = 512;
  // The page at / of the HTTP port, and the live load that it shows.
  bool page = true;

  ModelControl model_control = ModelControl::kNone;
  absl::Duration repository_poll = absl::Seconds(15);
  // ModelControl::kExplicit: loaded at start; "*" is all.
  std::vector<std::string> load_models;
  // Whether a model that could not be loaded at start keeps the daemon from being ready.
  bool strict_readiness = true;
  // Whether what a configuration leaves out is taken from the model's files.
  bool complete_configurations = true;
  // Tell whether the models are in order, and end.
  bool check_config = false;
  absl::Duration unload_timeout = absl::Seconds(30);
  absl::Duration warm_up = absl::Seconds(5);

  // End with exit code 1 if a model does not load, instead of serving the others.
  bool exit_on_error = true;

  // Load TorchScript and AOTInductor, which run whatever code they hold.
  bool allow_executable_models = false;

  // After SIGTERM: how long requests are still taken, so that whoever routes to this daemon sees NOT_SERVING
  // first.
  absl::Duration lame_duck = absl::Seconds(5);
  // How long accepted requests may then take to finish.
  absl::Duration drain_timeout = absl::Seconds(25);
  // A forward pass that runs longer turns the health of "liveness" to NOT_SERVING: it will not come back.
  absl::Duration stall_after = absl::Seconds(120);

  // How long a volume that is streamed may take to come; it holds its room from the beginning.
  absl::Duration upload_timeout = absl::Seconds(600);

  // How long an answer may take to be sent: a client that does not read holds memory.
  absl::Duration send_timeout = absl::Seconds(60);

  int64_t max_message_bytes = int64_t{64} << 20;
  // Of one PredictStream, read and not answered.
  int64_t max_stream_requests = 64;
  DecodeLimits decode;
  AdmissionOptions admission;
  // Pictures that may wait for an instance, per model; a model's own max_queue_size goes first.
  int64_t max_queue_size = 256;

  // What answers kept for equal requests may take, of all models that ask for it; 0 keeps none.
  int64_t response_cache_bytes = 0;

  // 0 takes one per core.
  int decode_threads = 0;
  int64_t decode_queue = 256;
  // Cores of one forward pass; 0 divides the machine's cores by the model's instances.
  int threads_per_instance = 0;

  // Whether clients on this machine may register shared memory.
  bool allow_shared_memory = false;

  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  // Triton's, which leave out lines of one level.
  bool log_info = true;
  bool log_warning = true;
  bool log_error = true;
  // A line for each call, and how many of them a second; 0 has no bound.
  bool access_log = false;
  int64_t access_log_per_second = 0;

  // What was passed over, a sentence each.
  std::vector<std::string> warnings;
};

// Where each port listens.
std::string GrpcHost(const Flags& flags);
std::string HttpHost(const Flags& flags);
std::string MetricsHost(const Flags& flags);

// Reads --flags, then SACCADED_FLAG from the environment, then --config FILE (name=value lines); earlier ones
// win. Prints help, the version or what is wrong, and returns the exit code (0, or 2 for a usage error) in
// `exit_code` if the daemon should not start.
std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code);

}  // namespace saccade::server
