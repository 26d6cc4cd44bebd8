#include "server/lifecycle/flags.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace saccade::server {
namespace {

constexpr int kUsageError = 2;
constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();

const std::map<std::string, LogFormat> kFormats = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                 {"info", LogLevel::kInfo},
                                                 {"warning", LogLevel::kWarning},
                                                 {"error", LogLevel::kError}};

// Without its description, which would stand in the help beside the words that already say it.
CLI::Validator Quiet(CLI::Validator validator) { return validator.description(""); }

void AddServing(CLI::App& app, Flags& flags) {
  app.add_option("--model-repository", flags.model_repositories,
                 "Folder of models, NAME/config.pbtxt and NAME/VERSION/weights.safetensors; may be repeated")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  app.add_option("--host", flags.host, "Address to listen on")->capture_default_str()->type_name("ADDRESS");
  const auto port = [&app](const std::string& name, int& value, const std::string& help) {
    app.add_option(name, value, help)
        ->check(Quiet(CLI::Range(0, 65535)))
        ->capture_default_str()
        ->type_name("PORT");
  };
  port("--grpc-port", flags.grpc_port, "gRPC; 0 picks a free port");
  port("--http-port", flags.http_port, "Health over HTTP; 0 picks a free port");
  port("--metrics-port", flags.metrics_port, "Prometheus metrics; 0 picks a free port");
  app.add_option("--exit-on-error", flags.exit_on_error,
                 "End if a model does not load (true), or serve the rest")
      ->capture_default_str()
      ->type_name("true|false");
}

void AddSeconds(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help) {
  app.add_option_function<double>(
         name, [&value](const double& seconds) { value = absl::Seconds(seconds); }, help)
      ->check(Quiet(CLI::Range(0.0, 86400.0)))
      ->type_name("S")
      ->default_str(absl::StrCat(absl::ToDoubleSeconds(value)));
}

void AddShutdown(CLI::App& app, Flags& flags) {
  AddSeconds(app, "--lame-duck-seconds", flags.lame_duck, "After SIGTERM: still take requests for so long");
  AddSeconds(app, "--drain-timeout-seconds", flags.drain_timeout,
             "Then let accepted requests finish for so long");
  AddSeconds(app, "--stall-seconds", flags.stall_after,
             "A longer forward pass makes health 'liveness' NOT_SERVING");
}

void AddBounds(CLI::App& app, Flags& flags) {
  const auto bound = [&app](const std::string& name, int64_t& value, int64_t most, const std::string& help) {
    app.add_option(name, value, help)
        ->check(Quiet(CLI::Range(int64_t{1}, most)))
        ->capture_default_str()
        ->type_name("N");
  };
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max() / 2;
  bound("--max-message-bytes", flags.max_message_bytes, kMaxBytes, "Largest gRPC message");
  AddSeconds(app, "--upload-timeout-seconds", flags.upload_timeout,
             "How long a streamed volume may take to come");
  bound("--max-picture-bytes", flags.decode.max_bytes, kMaxBytes, "Largest encoded picture");
  bound("--max-picture-pixels", flags.decode.max_pixels, int64_t{1} << 30, "Largest picture, by its header");
  bound("--max-inflight-requests", flags.admission.max_inflight_requests, kAny,
        "Requests taken and not answered");
  bound("--max-inflight-bytes", flags.admission.max_inflight_bytes, kAny, "Bytes of such requests");
  bound("--max-inflight-pixels", flags.admission.max_inflight_pixels, kAny,
        "Decoded pixels of such requests");
  CLI::Option* const rate =
      app.add_option("--client-requests-per-second", flags.admission.clients.requests_per_second,
                     "Requests of one client, by its address; 0 has no limit")
          ->check(Quiet(CLI::Range(0.0, 1e6)))
          ->capture_default_str()
          ->type_name("R");
  app.add_option("--client-burst", flags.admission.clients.burst,
                 "Requests of one client that may come at once after a pause; 0 is one second's")
      ->needs(rate)
      ->check(Quiet(CLI::Range(int64_t{0}, int64_t{1'000'000})))
      ->capture_default_str()
      ->type_name("N");
  bound("--max-queue-size", flags.max_queue_size, kAny, "Pictures that wait for an instance, per model");
  bound("--decode-queue", flags.decode_queue, kAny, "Requests that wait for a decode thread");
}

void AddMachine(CLI::App& app, Flags& flags) {
  app.add_option("--decode-threads", flags.decode_threads, "Threads that decode pictures; 0 is one per core")
      ->check(Quiet(CLI::Range(0, 1024)))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--threads-per-instance", flags.threads_per_instance,
                 "Cores of one forward pass; 0 divides the cores by the model's instances")
      ->check(Quiet(CLI::Range(0, 1024)))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--log-format", flags.log_format, "text or json")
      ->transform(Quiet(CLI::CheckedTransformer(kFormats)))
      ->default_str("text")
      ->type_name("FORMAT");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->transform(Quiet(CLI::CheckedTransformer(kLevels)))
      ->default_str("info")
      ->type_name("LEVEL");
}

// --grpc-port is SACCADED_GRPC_PORT.
void NameEnvironment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "version") continue;
    option->envname(
        absl::StrCat("SACCADED_", absl::AsciiStrToUpper(absl::StrReplaceAll(names[0], {{"-", "_"}}))));
  }
}

}  // namespace

std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code) {
  Flags flags;
  CLI::App app("saccaded serves attention-augmented vision models over gRPC.", "saccaded");
  app.set_version_flag("--version", std::string("saccaded ") + SACCADE_VERSION);
  app.set_config("--config", "", "File of flags: one name=value a line, names without the dashes");
  app.allow_config_extras(false);
  app.option_defaults()->always_capture_default(false);
  AddServing(app, flags);
  AddShutdown(app, flags);
  AddBounds(app, flags);
  AddMachine(app, flags);
  NameEnvironment(app);
  try {
    app.parse(argc, argv);
    // Not marked as required, because an unknown flag then would not be told.
    if (flags.model_repositories.empty()) throw CLI::RequiredError("--model-repository DIR");
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : kUsageError;
    return std::nullopt;
  }
  return flags;
}

}  // namespace saccade::server
