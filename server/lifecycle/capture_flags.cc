#include "server/lifecycle/capture_flags.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr double kMaxAge = 1e9;

// Parses "MODEL=RATE". Returns an error message, or "".
std::string ReadRate(const std::string& text, CaptureChoice* choice) {
  const size_t equals = text.rfind('=');
  double rate = 0;
  if (equals == std::string::npos || equals == 0 || !absl::SimpleAtod(text.substr(equals + 1), &rate) ||
      !(rate >= 0 && rate <= 1))
    return absl::StrCat("is '", text,
                        "', expected a model's name, '=' and a share from 0 to 1, such as detector=0.1");
  choice->models[text.substr(0, equals)] = rate;
  return "";
}

void AddBytes(CLI::App& app, const std::string& name, int64_t& value, int64_t min, CLI::Option* needs,
              const std::string& help) {
  CLI::Option* const option = app.add_option(name, value, help)
                                  ->check(CLI::Range(min, int64_t{1} << 50).description(""))
                                  ->capture_default_str()
                                  ->type_name("BYTES");
  if (needs != nullptr) option->needs(needs);
}

}  // namespace

void AddCaptureFlags(CLI::App& app, CaptureOptions* options) {
  CLI::Option* const folder =
      app.add_option("--capture", options->folder,
                     "Write calls and their answers into this folder, for `saccade replay`; it is "
                     "created if it is missing")
          ->type_name("DIR");
  app.add_option("--capture-sink", options->sink,
                 "Send calls and their answers to this HTTP address as CloudEvents, like KServe's logger")
      ->type_name("URL");
  app.add_option(
         "--capture-rate", options->choice.rate,
         "Share of calls that is captured, from 0 to 1; calls that fail because of their request or of the "
         "daemon are always captured")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->capture_default_str()
      ->type_name("SHARE");
  const auto rates = [options](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const std::string wrong = ReadRate(text, &options->choice);
      if (!wrong.empty()) throw CLI::ValidationError("--capture-model-rate", wrong);
    }
  };
  app.add_option_function<std::vector<std::string>>("--capture-model-rate", rates,
                                                    "Another share for one model; may be repeated")
      ->allow_extra_args(false)
      ->type_name("MODEL=SHARE");
  const std::map<std::string, CapturedPixels> pixels = {
      {"full", CapturedPixels::kFull}, {"hash", CapturedPixels::kHash}, {"none", CapturedPixels::kNone}};
  app.add_option(
         "--capture-pixels", options->pixels,
         "What is kept of requests and answers: all (full), their SHA-256 and size (hash), or their size "
         "(none)")
      ->transform(CLI::CheckedTransformer(pixels).description(""))
      ->default_str("full")
      ->type_name("full|hash|none");
  app.add_flag("--capture-paused", options->paused, "Capture nothing until POST /v1/capture switches it on");
  AddBytes(app, "--capture-max-bytes", options->max_bytes, 1 << 20, folder,
           "Maximum size of all files in --capture; the oldest are deleted");
  app.add_option_function<double>(
         "--capture-max-age-seconds",
         [options](const double& seconds) { options->max_age = absl::Seconds(seconds); },
         "Delete files in --capture whose calls are all older than this")
      ->needs(folder)
      ->check(CLI::Range(1.0, kMaxAge).description(""))
      ->type_name("S")
      ->default_str("604800");
  AddBytes(app, "--capture-queue-bytes", options->queue_bytes, 1 << 16, nullptr,
           "Memory for calls that wait to be written, and as much for those that wait to be sent; more are "
           "dropped");
}

}  // namespace saccade::server
