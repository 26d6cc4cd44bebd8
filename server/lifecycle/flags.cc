#include "server/lifecycle/flags.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/lifecycle/attest_flag.h"
#include "server/lifecycle/capture_flags.h"
#include "server/lifecycle/flag_errors.h"
#include "server/lifecycle/flag_sources.h"
#include "server/lifecycle/flag_table.h"
#include "server/lifecycle/grpc_flags.h"
#include "server/lifecycle/triton_flags.h"
#include "server/security/exposure.h"

namespace saccade::server {
namespace {

constexpr int kUsageError = 2;
constexpr int64_t kMaxCacheBytes = int64_t{1} << 50;
// More make each scrape long: every model has six such histograms.
constexpr size_t kMaxBuckets = 64;
constexpr double kMaxBucket = 86400;
constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();

// Both formats of Triton are text lines.
const std::map<std::string, LogFormat> kFormats = {{"text", LogFormat::kText},
                                                   {"json", LogFormat::kJson},
                                                   {"default", LogFormat::kText},
                                                   {"ISO8601", LogFormat::kText}};
const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                 {"info", LogLevel::kInfo},
                                                 {"warning", LogLevel::kWarning},
                                                 {"error", LogLevel::kError}};

const std::map<std::string, ModelControl> kControls = {
    {"none", ModelControl::kNone}, {"poll", ModelControl::kPoll}, {"explicit", ModelControl::kExplicit}};

const std::map<std::string, DecodeMode> kDecodeModes = {{"process", DecodeMode::kProcess},
                                                        {"thread", DecodeMode::kThread}};

// Removes the validator's description, which the help text already contains.
CLI::Validator Quiet(CLI::Validator validator) { return validator.description(""); }

// Unlike CLI::Range, rejects what is not a number at all.
CLI::Validator Between(double min, double max) {
  const auto check = [min, max](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= min && value <= max) return "";
    return absl::StrCat("Value ", text, " not in range ", min, " to ", max);
  };
  return CLI::Validator(check, "");
}

CLI::Validator ExistingFolder() {
  const auto check = [](const std::string& path) -> std::string {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return "";
    return absl::StrCat("is '", path, "', which is no folder",
                        error ? absl::StrCat(" (", error.message(), ")") : std::string(),
                        "; expected the folder that holds a folder for each model");
  };
  return CLI::Validator(check, "");
}

void AddServing(CLI::App& app, Flags& flags) {
  app.add_option(
         "--model-repository,--model-store", flags.model_repositories,
         "Folder with models, as NAME/config.pbtxt and NAME/VERSION/weights.safetensors; may be repeated")
      ->check(Quiet(ExistingFolder()))
      ->type_name("DIR");
  app.add_option("--host", flags.host, "Address to listen on")->capture_default_str()->type_name("ADDRESS");
  const auto address = [&app](const std::string& name, std::optional<std::string>& value,
                              const std::string& instead_of) {
    app.add_option(name, value, absl::StrCat("Overrides ", instead_of))->type_name("ADDRESS");
  };
  address("--grpc-address", flags.grpc_host, "--host, for gRPC");
  address("--http-address", flags.http_host, "--host, for HTTP and metrics");
  address("--metrics-address", flags.metrics_host, "--http-address, for metrics");
  const auto port = [&app](const std::string& name, int& value, const std::string& help) {
    app.add_option(name, value, help)
        ->check(Quiet(CLI::Range(0, 65535)))
        ->capture_default_str()
        ->type_name("PORT");
  };
  port("--grpc-port", flags.grpc_port,
       "Port for gRPC; serves HTTP too, as --http-port does; 0 picks a free port");
  port("--http-port", flags.http_port,
       "Port for HTTP (REST, health, the page) and gRPC-web; serves gRPC too; 0 picks a free port");
  port("--metrics-port", flags.metrics_port, "Port for Prometheus metrics; 0 picks a free port");
  app.add_option("--id", flags.id, "The server's name in its metadata, as clients see it")
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--page", flags.page, "Serve the web page at / of the HTTP port")
      ->capture_default_str()
      ->type_name("true|false");
  app.add_option("--exit-on-error", flags.exit_on_error,
                 "Exit if a model does not load at start; if false, serve the other models")
      ->capture_default_str()
      ->type_name("true|false");
  app.add_flag(
      "--allow-executable-models", flags.permissions.executable,
      "Also load TorchScript (model.pt) and AOTInductor (model.pt2) models, which run code of their own");
  const auto read_key = [&flags](const std::string& path) {
    auto key = SigningKey::Open(path);
    if (!key.ok()) throw CLI::ValidationError("--signing-key", std::string(key.status().message()));
    flags.permissions.checksums.key = *std::move(key);
  };
  CLI::Option* const key =
      app.add_option_function<std::string>("--signing-key", read_key,
                                           "Ed25519 public key (PEM): where a model has a SHA256SUMS.sig, it "
                                           "must be its signature of SHA256SUMS")
          ->type_name("FILE");
  app.add_flag("--require-signed", flags.permissions.checksums.required,
               "Load only models with SHA256SUMS and its signature by --signing-key")
      ->needs(key);
  AddAttestFlag(app, &flags);
}

void AddSeconds(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help,
                double least = 0);

// Flags have Triton's names where they mean the same.
void AddModels(CLI::App& app, Flags& flags) {
  app.add_option("--model-control-mode", flags.model_control,
                 "Which models are loaded: all at start (none), also later changes in the repository (poll), "
                 "or those that "
                 "--load-model and requests name (explicit)")
      ->transform(Quiet(CLI::CheckedTransformer(kControls, CLI::ignore_case)))
      ->default_str("none")
      ->type_name("MODE");
  app.add_option_function<double>(
         "--repository-poll-secs",
         [&flags](const double& seconds) { flags.repository_poll = absl::Seconds(seconds); },
         "How often the repository is scanned; a change is applied once two scans have seen it")
      ->check(Between(0.01, 86400))
      ->type_name("S")
      ->default_str("15");
  app.add_option_function<double>(
         "--repository-poll-jitter-secs",
         [&flags](const double& seconds) { flags.repository_poll_jitter = absl::Seconds(seconds); },
         "Add a random time of up to this to each wait between two scans, so that replicas with a shared "
         "repository do not all read it at once")
      ->check(Between(0, 86400))
      ->type_name("S")
      ->default_str("0");
  app.add_option(
         "--load-model", flags.load_models,
         "With --model-control-mode=explicit: load this model at start; may be repeated, '*' loads all")
      ->type_name("NAME");
  CLI::Option* const on_demand =
      app.add_flag("--load-on-demand", flags.load_on_demand,
                   "With --model-control-mode=explicit: the first request for a model loads it");
  app.add_option_function<double>(
         "--idle-unload-seconds",
         [&flags](const double& seconds) {
           flags.idle_unload = seconds > 0 ? absl::Seconds(seconds) : absl::InfiniteDuration();
         },
         "Unload a model that was loaded on demand and not used for so long; 0 means never")
      ->needs(on_demand)
      ->check(Between(0, 1e7))
      ->type_name("S")
      ->default_str("0");
  app.add_option("--model-memory-bytes", flags.max_model_bytes,
                 "Maximum memory of loaded models on the CPU; with --load-on-demand the least recently used "
                 "are unloaded for others; 0 means no limit")
      ->check(Quiet(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max() / 2)))
      ->capture_default_str()
      ->type_name("BYTES");
  app.add_option("--strict-readiness", flags.strict_readiness,
                 "Report not ready while a model that should have been loaded at start is not served")
      ->capture_default_str()
      ->type_name("true|false");
  app.add_flag("--disable-auto-complete-config{false}", flags.complete_configurations,
               "Do not fill in from a model's files what its config.pbtxt leaves out");
  app.add_option_function<bool>(
         "--strict-model-config", [&flags](const bool& strict) { flags.complete_configurations = !strict; },
         "true is the same as --disable-auto-complete-config")
      ->default_str("false")
      ->type_name("true|false");
  app.add_flag("--check-config", flags.check_config,
               "Check every model and exit: with code 0, or 1 if a model has errors");
  AddSeconds(app, "--unload-timeout-seconds", flags.unload_timeout,
             "How long an unload waits for requests in flight before it fails");
  AddSeconds(app, "--warm-up-seconds", flags.warm_up,
             "Maximum time to warm up a model's batch sizes other than the smallest and largest");
  AddSeconds(app, "--load-deadline-seconds", flags.load_deadline,
             "How long the models may take to load at start; then the daemon becomes ready with those that "
             "are loaded, and goes on loading the others; 0 waits for all");
}

// Parses "0.001,0.01,0.1". Returns an error message, or "".
std::string ReadBuckets(const std::string& text, std::vector<double>* buckets) {
  buckets->clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    double bound = 0;
    const double last = buckets->empty() ? 0 : buckets->back();
    if (buckets->size() >= kMaxBuckets || !absl::SimpleAtod(part, &bound) || !(bound > last) ||
        bound > kMaxBucket)
      return absl::StrCat("is '", text, "', expected 1 to ", kMaxBuckets,
                          " ascending numbers of seconds, above 0 and up to ", kMaxBucket,
                          ", such as 0.001,0.01,0.1");
    buckets->push_back(bound);
  }
  return "";
}

void AddCompatibility(CLI::App& app, Flags& flags) {
  const auto read = [&flags](const std::string& text) {
    const std::string wrong = ReadBuckets(text, &flags.latency_buckets);
    if (!wrong.empty()) throw CLI::ValidationError("--latency-buckets", wrong);
  };
  app.add_option_function<std::string>("--latency-buckets", read,
                                       "Upper bounds of the buckets of saccade_request_duration_seconds and "
                                       "saccade_stage_duration_seconds, in seconds, ascending")
      ->type_name("S,S,...");
  app.add_flag(
      "--orca-load-reports", flags.orca_load_reports,
      "End every gRPC call with a load report in the trailer endpoint-load-metrics-bin (ORCA), for "
      "clients that weight replicas by load; without the flag, calls get one that ask for it with the "
      "metadata endpoint-load-metrics-format: bin");
  app.add_flag("--triton-status-codes", flags.triton_status_codes,
               "Answer with Triton's status codes in the cases in which they differ from saccaded's "
               "(docs/compatibility.md, Status codes)");
}

void AddTrust(CLI::App& app, Flags& flags) {
  app.add_flag("--allow-drills", flags.permissions.drills,
               "Also load models that fail on purpose: 'identity' with fail_at, hang_at, lose_device_at, "
               "no_room_above or broken_thread_file");
  app.add_flag("--allow-shared-memory", flags.allow_shared_memory,
               "Let clients on this machine register files in /dev/shm and memory of GPUs for tensors");
}

void AddSeconds(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help,
                double least) {
  app.add_option_function<double>(
         name, [&value](const double& seconds) { value = absl::Seconds(seconds); }, help)
      ->check(Between(least, 86400))
      ->type_name("S")
      ->default_str(absl::StrCat(absl::ToDoubleSeconds(value)));
}

void AddShutdown(CLI::App& app, Flags& flags) {
  AddSeconds(app, "--lame-duck-seconds", flags.lame_duck,
             "After SIGTERM: how long to continue accepting requests");
  AddSeconds(app, "--drain-timeout-seconds,--exit-timeout-secs", flags.drain_timeout,
             "How long accepted requests may then take to finish");
  AddSeconds(app, "--stall-seconds", flags.stall_after,
             "Health of 'liveness' becomes NOT_SERVING if a forward pass neither ends nor reports progress "
             "for so long",
             /*least=*/0.1);
}

void AddBounds(CLI::App& app, Flags& flags) {
  const auto bound = [&app](const std::string& name, int64_t& value, int64_t max, const std::string& help) {
    app.add_option(name, value, help)
        ->check(Quiet(CLI::Range(int64_t{1}, max)))
        ->capture_default_str()
        ->type_name("N");
  };
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max() / 2;
  bound("--max-message-bytes", flags.max_message_bytes, kMaxBytes,
        "Maximum size of a message, over gRPC and HTTP");
  bound("--max-stream-requests", flags.max_stream_requests, 10'000,
        "Maximum unanswered requests of one PredictStream");
  AddSeconds(app, "--upload-timeout-seconds", flags.upload_timeout,
             "How long a client may take to stream a volume");
  bound("--max-picture-bytes", flags.decode.max_bytes, kMaxBytes, "Maximum size of an encoded picture");
  bound("--max-picture-pixels", flags.decode.max_pixels, int64_t{1} << 30,
        "Maximum pixels of a picture, checked in its header; of a TIFF in tiles, those of a region or tile");
  bound("--max-inflight-requests", flags.admission.max_inflight_requests, kAny,
        "Maximum requests that are accepted and not yet answered; one client may have half of them if others "
        "sent requests within a minute, else all");
  bound("--max-inflight-bytes", flags.admission.max_inflight_bytes, kAny,
        "Maximum bytes of messages that are being received, of such requests, of large answers that clients "
        "have not read yet, and of open calls with their headers; one client may hold half of it");
  bound("--max-decoded-bytes", flags.admission.max_decoded_bytes, kAny,
        "Maximum bytes of decoded pictures and network inputs of such requests, of detections that wait for "
        "other tiles, and of masks that are drawn; one client may hold half of it if others sent requests "
        "within a minute, else all");
  CLI::Option* const rate =
      app.add_option(
             "--client-requests-per-second", flags.admission.clients.requests_per_second,
             "Maximum rate of all requests of one client but health checks, by its token, else by its "
             "address (an IPv6 address by its first 64 bits); a token's own rate= goes first; 0 means no "
             "limit")
          ->check(Between(0, 1e6))
          ->capture_default_str()
          ->type_name("R");
  app.add_option("--client-burst", flags.admission.clients.burst,
                 "Maximum burst of one client after a pause; 0 means the requests of one second")
      ->needs(rate)
      ->check(Quiet(CLI::Range(int64_t{0}, int64_t{1'000'000})))
      ->capture_default_str()
      ->type_name("N");
  bound("--max-queue-size", flags.max_queue_size, kAny,
        "Maximum pictures that wait for an instance, per model, and at least its max_batch_size; its own "
        "max_queue_size goes first");
  bound("--decode-queue", flags.decode_queue, kAny, "Maximum requests that wait for a decode thread");
}

// Parses "local,size=1048576", Triton's syntax. Returns an error message, or "".
std::string ReadCacheConfig(const std::string& text, int64_t* bytes) {
  constexpr absl::string_view kSize = "local,size=";
  int64_t size = 0;
  if (text.rfind(std::string(kSize), 0) == 0 && absl::SimpleAtoi(text.substr(kSize.size()), &size) &&
      size >= 1 && size <= kMaxCacheBytes) {
    *bytes = size;
    return "";
  }
  return absl::StrCat("is '", text, "', expected local,size=BYTES with 1 to ", kMaxCacheBytes, " bytes");
}

void AddCache(CLI::App& app, Flags& flags) {
  const auto read = [&flags](const std::string& text) {
    const std::string wrong = ReadCacheConfig(text, &flags.response_cache_bytes);
    if (!wrong.empty()) throw CLI::ValidationError("--cache-config", wrong);
  };
  CLI::Option* const config =
      app.add_option_function<std::string>(
             "--cache-config", read,
             "Cache answers for equal requests to models whose config.pbtxt enables response_cache")
          ->type_name("local,size=BYTES");
  app.add_option("--response-cache-byte-size", flags.response_cache_bytes,
                 "The same as --cache-config local,size=BYTES")
      ->check(Quiet(CLI::Range(int64_t{0}, kMaxCacheBytes)))
      ->excludes(config)
      ->type_name("BYTES");
}

void AddMachine(CLI::App& app, Flags& flags) {
  app.add_option("--cores", flags.cores,
                 "Cores that the daemon keeps busy; 0 means those that its affinity and its control group "
                 "allow, with the threads of a core counted once")
      ->check(Quiet(CLI::Range(0, 1024)))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--decode-threads", flags.decode_threads,
                 "Threads that decode pictures; 0 means one per core")
      ->check(Quiet(CLI::Range(0, 1024)))
      ->capture_default_str()
      ->type_name("N");
  app.add_option(
         "--decode", flags.decode_mode,
         "Where pictures are decoded: in confined worker processes (process) or on the daemon's own threads "
         "(thread). By default in processes, or on threads where the system does not allow those")
      ->transform(Quiet(CLI::CheckedTransformer(kDecodeModes)))
      ->type_name("process|thread");
  app.add_option("--threads-per-instance", flags.threads_per_instance,
                 "Cores used by one forward pass; 0 divides the cores by the model's instances, and tries "
                 "fewer for short passes")
      ->check(Quiet(CLI::Range(0, 1024)))
      ->capture_default_str()
      ->type_name("N");
  app.add_option(
         "--state-folder", flags.state_folder,
         "Where what was measured of models is kept, so that the next start does not measure it again, and "
         "which shadow versions were promoted; "
         "empty keeps nothing. By default $STATE_DIRECTORY, which systemd sets, else "
         "$XDG_STATE_HOME/saccade, else "
         "~/.local/state/saccade")
      ->type_name("DIR");
  app.add_option("--log-format", flags.log_format,
                 "text or json; Triton's values default and ISO8601 mean text")
      ->transform(Quiet(CLI::CheckedTransformer(kFormats)))
      ->default_str("text")
      ->type_name("FORMAT");
  const std::map<std::string, int> levels = {{"true", 1}, {"false", 0}};
  app.add_option_function<int>(
         "--log-verbose",
         [&flags](const int& level) {
           if (level > 0) flags.log_level = LogLevel::kDebug;
         },
         "A value above 0 means --log-level=debug")
      ->transform(Quiet(CLI::Transformer(levels, CLI::ignore_case)))
      ->check(Quiet(CLI::Range(0, 1000)))
      ->default_str("0")
      ->type_name("N");
  app.add_option("--log-level", flags.log_level, "Lowest level that is logged: debug, info, warning or error")
      ->transform(Quiet(CLI::CheckedTransformer(kLevels)))
      ->default_str("info")
      ->type_name("LEVEL");
}

void AddLogLevels(CLI::App& app, Flags& flags) {
  const auto level = [&app](const std::string& name, bool& value) {
    app.add_option(absl::StrCat("--log-", name), value, absl::StrCat("Whether ", name, " lines are written"))
        ->capture_default_str()
        ->type_name("true|false");
  };
  level("info", flags.log_info);
  level("warning", flags.log_warning);
  level("error", flags.log_error);
}

void CheckSecurity(Flags& flags) {
  const SecurityFlags& security = flags.security;
  std::vector<std::string> hosts = {GrpcHost(flags), HttpHost(flags)};
  if (!security.plain_metrics) hosts.push_back(MetricsHost(flags));
  const absl::Status exposed = CheckExposure({.hosts = std::move(hosts),
                                              .tls = !security.tls.certificate.empty(),
                                              .requires_client_certificate = !security.tls.client_ca.empty(),
                                              .requires_token = !security.token_file.empty()});
  if (exposed.ok()) return;
  if (!security.insecure) throw CLI::ValidationError("--host", std::string(exposed.message()));
  flags.warnings.push_back(security.token_file.empty()
                               ? "--insecure: everyone who can reach the ports has full access"
                               : "--insecure: tokens are sent over the network without TLS");
}

void CheckLoadModels(const Flags& flags) {
  const auto names = [](const std::string& name) { return !name.empty(); };
  if (flags.model_control == ModelControl::kExplicit) return;
  if (std::none_of(flags.load_models.begin(), flags.load_models.end(), names)) return;
  throw CLI::ValidationError("--load-model",
                             "needs --model-control-mode=explicit; in the other modes every model of the "
                             "repository is loaded, so leave it out");
}

void CheckOnDemand(const Flags& flags) {
  if (!flags.load_on_demand || flags.model_control == ModelControl::kExplicit) return;
  throw CLI::ValidationError("--load-on-demand",
                             "needs --model-control-mode=explicit; in the other modes every model of the "
                             "repository is loaded at start, so leave it out");
}

void AddAccessLog(CLI::App& app, Flags& flags) {
  CLI::Option* const wanted =
      app.add_flag("--access-log", flags.access_log, "Write a line for each inference, at level info");
  app.add_option("--access-log-per-second", flags.access_log_per_second,
                 "Maximum number of such lines per second; the next line states how many were left out; 0 "
                 "means no limit")
      ->needs(wanted)
      ->check(Quiet(CLI::Range(int64_t{0}, int64_t{1'000'000})))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

std::string GrpcHost(const Flags& flags) { return flags.grpc_host.value_or(flags.host); }
std::string HttpHost(const Flags& flags) { return flags.http_host.value_or(flags.host); }
std::string MetricsHost(const Flags& flags) { return flags.metrics_host.value_or(HttpHost(flags)); }

std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code) {
  Flags flags;
  CLI::App app("saccaded serves attention-augmented vision models over gRPC and HTTP.", "saccaded");
  app.set_version_flag("--version", std::string("saccaded ") + SACCADE_VERSION);
  app.set_config("--config", "", "File with flags, one name=value per line, without the dashes");
  app.allow_config_extras(false);
  app.option_defaults()->always_capture_default(false);
  AddServing(app, flags);
  AddModels(app, flags);
  AddTrust(app, flags);
  AddCompatibility(app, flags);
  AddSecurityFlags(app, &flags.security);
  AddShutdown(app, flags);
  AddBounds(app, flags);
  AddCache(app, flags);
  AddMachine(app, flags);
  AddLogLevels(app, flags);
  AddAccessLog(app, flags);
  AddCaptureFlags(app, &flags.capture);
  AddFrontFlags(app, &flags.front);
  AddGrpcFlags(app, &flags.front.limits);
  AddTritonFlags(app, &flags.warnings);
  SetFlagSources(app);
  app.failure_message(
      [](const CLI::App* failed, const CLI::Error& error) { return FlagErrorText(*failed, error); });
  // For ./dev docs.
  const auto print_table = [&app] {
    std::cout << FlagTable(app);
    throw CLI::Success();
  };
  app.add_flag_callback("--flag-table", print_table)->group("");
  try {
    app.parse(SplitWords(argc, argv));
    // Checked here, because a required option would hide errors about unknown flags.
    if (flags.model_repositories.empty()) {
      throw CLI::ValidationError("--model-repository",
                                 "is missing; name the folder that holds a folder for each model");
    }
    CheckLoadModels(flags);
    CheckOnDemand(flags);
    if (!flags.check_config) CheckSecurity(flags);
    flags.admission.max_message_bytes = flags.max_message_bytes;
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : kUsageError;
    return std::nullopt;
  }
  return flags;
}

}  // namespace saccade::server
