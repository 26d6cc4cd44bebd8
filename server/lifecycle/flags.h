// The daemon's flags: command line, environment and configuration file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/admission/admission.h"
#include "server/attestation/attestation_key.h"
#include "server/capture/capture_settings.h"
#include "server/catalog/model_control.h"
#include "server/engine/model_permissions.h"
#include "server/lifecycle/front_flags.h"
#include "server/lifecycle/security_flags.h"
#include "server/logging/log.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {

// Where the libraries that decode pictures run.
enum class DecodeMode { kProcess, kThread };

struct Flags {
  std::vector<std::string> model_repositories;
  std::string host = "0.0.0.0";
  // Replace `host`; for metrics, the default is the HTTP port's address.
  std::optional<std::string> grpc_host;
  std::optional<std::string> http_host;
  std::optional<std::string> metrics_host;
  SecurityFlags security;
  // Triton's default ports. 0 picks a free one.
  int grpc_port = 8001;
  int http_port = 8000;
  int metrics_port = 8002;
  // The network front's threads, connections and limits.
  FrontFlags front;
  // The server's name in its metadata.
  std::string id = "saccade";
  // Serve the page at / of the HTTP port, and the route with the live load that it shows.
  bool page = true;

  ModelControl model_control = ModelControl::kNone;
  absl::Duration repository_poll = absl::Seconds(15);
  // Upper bound of the random time that is added to each wait between two scans.
  absl::Duration repository_poll_jitter = absl::ZeroDuration();
  // ModelControl::kExplicit: models to load at start; "*" stands for all.
  std::vector<std::string> load_models;
  // ModelControl::kExplicit: requests load the models that are not loaded.
  bool load_on_demand = false;
  // After how long a model that requests loaded is unloaded again if it was not used.
  absl::Duration idle_unload = absl::InfiniteDuration();
  // Memory that loaded models may hold; 0 means no limit.
  int64_t max_model_bytes = 0;
  // Report not ready while a model that should have been loaded at start is not served.
  bool strict_readiness = true;
  // Fill in what a configuration leaves out from the model's files.
  bool complete_configurations = true;
  // Check the models and exit.
  bool check_config = false;
  absl::Duration unload_timeout = absl::Seconds(30);
  absl::Duration warm_up = absl::Seconds(5);
  // After how long the daemon becomes ready with the models that are loaded by then; 0 waits for all. Shorter
  // than the startup probes of the manifests.
  absl::Duration load_deadline = absl::Seconds(240);

  // Exit with code 1 if a model does not load, instead of serving the others.
  bool exit_on_error = true;

  ModelPermissions permissions;

  // After SIGTERM, how long requests are still accepted, so that load balancers see NOT_SERVING first.
  absl::Duration lame_duck = absl::Seconds(5);
  // How long accepted requests may then take to finish.
  absl::Duration drain_timeout = absl::Seconds(25);
  // If a forward pass runs longer, it is assumed to hang, and the health of "liveness" becomes NOT_SERVING.
  absl::Duration stall_after = absl::Seconds(120);

  // How long a client may take to stream a volume. Its admission ticket is held from the start.
  absl::Duration upload_timeout = absl::Seconds(600);

  int64_t max_message_bytes = int64_t{64} << 20;
  // Maximum number of requests of a PredictStream that were read and not yet answered.
  int64_t max_stream_requests = 64;
  DecodeLimits decode;
  // Its max_message_bytes is the flag above.
  AdmissionOptions admission;
  // Maximum number of pictures that wait for an instance, per model. A model's own max_queue_size takes
  // precedence.
  int64_t max_queue_size = 256;

  // Memory for cached answers, over all models that enable the cache; 0 disables it.
  int64_t response_cache_bytes = 0;

  // Cores that the daemon keeps busy; 0 uses what its affinity and its control group allow.
  int cores = 0;
  // 0 uses one thread per core.
  int decode_threads = 0;
  // Unset: worker processes if the system allows them, else threads.
  std::optional<DecodeMode> decode_mode;
  int64_t decode_queue = 256;
  // Where what was measured of models is kept for the next start; empty keeps nothing. Unset:
  // DefaultStateFolder().
  std::optional<std::string> state_folder;
  // Cores used by one forward pass; 0 divides the cores by the number of the model's instances.
  int threads_per_instance = 0;

  // Upper bounds of the buckets of requests' and stages' times, in seconds and ascending; empty takes the
  // default ones.
  std::vector<double> latency_buckets;

  // Answer with Triton's status codes where they differ from this daemon's.
  bool triton_status_codes = false;

  // End every call with a load report.
  bool orca_load_reports = false;

  // Let clients on this machine register shared memory, on GPUs too.
  bool allow_shared_memory = false;

  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  // Triton's flags, each of which disables the lines of one level.
  bool log_info = true;
  bool log_warning = true;
  bool log_error = true;
  // Write a line for each inference, and how many per second; 0 means no limit.
  bool access_log = false;
  int64_t access_log_per_second = 0;

  // Null: answers are not signed.
  std::shared_ptr<const AttestationKey> attest_key;

  // Its id, version and namespace are set when the daemon starts.
  CaptureOptions capture;

  // Warnings about ignored flags, one sentence each.
  std::vector<std::string> warnings;
};

// The address on which each port listens.
std::string GrpcHost(const Flags& flags);
std::string HttpHost(const Flags& flags);
std::string MetricsHost(const Flags& flags);

// Reads flags from the command line, the environment (SACCADED_FLAG) and --config FILE (name=value lines);
// earlier sources take precedence. If the daemon should not start, prints help, the version or the error,
// sets `exit_code` (0, or 2 for a usage error) and returns nullopt.
std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code);

}  // namespace saccade::server
