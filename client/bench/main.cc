#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/bench/bare_process.h"
#include "client/bench/overhead.h"
#include "client/bench/report.h"
#include "client/cli/output/failure.h"

namespace saccade::client {
namespace {

int Run(int argc, char** argv, Console& console, BareProcess& bare) {
  OverheadOptions options;
  std::string json;
  CLI::App app(
      "Measures the overhead of a daemon over a bare gRPC server, with the same clients in turns.\n"
      "The bare server runs in its own process on this machine; requests hold a tiny raw picture.");
  app.add_option("--url", options.url, "The daemon's gRPC address")
      ->envname("SACCADE_URL")
      ->capture_default_str();
  app.add_option("-m,--model", options.model, "The model to send requests to")->required();
  app.add_option("--duration", options.duration_seconds, "Seconds for each of the four measurements")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--concurrency", options.concurrency, "Numbers of clients, e.g. 1,16")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Number of times that the measurements alternate")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", json, "JSON file to write the results to");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, console.out, console.err) == 0 ? kExitOk : kExitUsage;
  }

  const auto results =
      MeasureOverhead(options, [&bare](const std::string& predict_answer, const std::string& live_answer) {
        return bare.Start(predict_answer, live_answer);
      });
  if (!results.ok()) {
    Complain(console, absl::StrCat(options.url, ": ", TextOf(results.status(), options.url).what));
    return ExitCodeOf(results.status());
  }
  PrintReport(console, *results);
  if (!json.empty()) {
    std::ofstream file(json);
    file << ReportJson(options, *results) << std::flush;
    if (!file) {
      Complain(console, absl::StrCat("could not write ", json));
      return kExitFailure;
    }
  }
  return Flush(console) ? kExitOk : kExitFailure;
}

}  // namespace
}  // namespace saccade::client

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  // Must come first, because it forks.
  saccade::client::BareProcess bare;
  saccade::client::Console console = saccade::client::StandardConsole();
  return saccade::client::Run(argc, argv, console, bare);
}
