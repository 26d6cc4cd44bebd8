// saccade_bench_load: a load for servers of the Open Inference Protocol, or the echo server that they are
// compared with. tools/bench_server and tools/overload read its output, which is JSON.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/base/internal/endian.h"
#include "client/bench/call_outcomes.h"
#include "client/bench/echo_server.h"
#include "client/bench/infer_load.h"

namespace saccade::client {
namespace {

struct LoadFlags {
  std::string url;
  InferInput input;
  std::string file;
  int clients = 1;
  double seconds = 1;
  double rate = 0;
  double deadline_ms = 0;
  uint64_t seed = 1;
};

// Serves until standard input ends, so that the server ends with the process that started it.
int ServeEcho() {
  const EchoServer server;
  std::cout << server.url() << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return 0;
}

// Encodes one element of a BYTES tensor.
std::string Element(const std::string& bytes) {
  std::string element(4, '\0');
  absl::little_endian::Store32(element.data(), static_cast<uint32_t>(bytes.size()));
  return element + bytes;
}

bool FillInput(const LoadFlags& flags, InferInput& input) {
  if (!flags.file.empty()) {
    std::ifstream file(flags.file, std::ios::binary);
    if (!file) {
      std::cerr << "cannot read " << flags.file << '\n';
      return false;
    }
    input.datatype = "BYTES";
    input.shape = {1, 1};
    input.bytes = Element({std::istreambuf_iterator<char>(file), {}});
    return true;
  }
  int64_t values = 1;
  for (const int64_t extent : input.shape) values *= extent;
  const std::vector<float> grey(values, 0.25F);
  input.bytes.assign(reinterpret_cast<const char*>(grey.data()), grey.size() * sizeof(float));
  return true;
}

double Milliseconds(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

nlohmann::json ToJson(const Latency& latency) {
  return {{"p50", Milliseconds(latency.p50)},
          {"p90", Milliseconds(latency.p90)},
          {"p99", Milliseconds(latency.p99)},
          {"mean", Milliseconds(latency.mean)}};
}

// Returns the processor time of this process so far.
double ProcessorSeconds() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

nlohmann::json CountOutcomes(InferLoad& load, const LoadFlags& flags) {
  const absl::Duration deadline = absl::Milliseconds(flags.deadline_ms);
  CallOutcomes outcomes(flags.clients, deadline);
  const double before = ProcessorSeconds();
  const InferLoadResult result = load.Open({.duration = absl::Seconds(flags.seconds),
                                            .rate = flags.rate,
                                            .seed = flags.seed,
                                            .deadline = deadline,
                                            .ended = [&](const EndedCall& call) { outcomes.Count(call); }});
  const double used = ProcessorSeconds() - before;
  const CallOutcomes::Totals totals = outcomes.Sum();
  const auto count = [&](CallOutcome outcome) { return totals.counts[static_cast<size_t>(outcome)]; };
  return {{"elapsed_s", absl::ToDoubleSeconds(result.elapsed)},
          {"sent", result.sent},
          {"in_time", count(CallOutcome::kInTime)},
          {"late", count(CallOutcome::kLate)},
          {"refused", count(CallOutcome::kRefused)},
          {"failed", count(CallOutcome::kFailed)},
          {"refused_by_reason", totals.refused},
          {"failed_by_code", totals.failed},
          {"in_time_by_client", totals.clients},
          {"seconds", totals.seconds},
          {"answers_ms", ToJson(totals.answers)},
          {"refusals_ms", ToJson(totals.refusals)},
          {"behind_ms", ToJson(totals.behind)},
          {"processor_s", used}};
}

int RunLoad(LoadFlags flags) {
  if (flags.deadline_ms > 0 && flags.rate <= 0) {
    std::cerr << "--deadline-ms needs --rate: in a closed loop calls have no due time\n";
    return 2;
  }
  if (!FillInput(flags, flags.input)) return 2;
  InferLoad load(flags.url, InferRequest(flags.input), flags.clients);
  if (absl::Status status = load.Connect(); !status.ok()) {
    std::cerr << flags.url << ": " << status << '\n';
    return 1;
  }
  if (flags.deadline_ms > 0) {
    std::cout << CountOutcomes(load, flags) << std::endl;
    return 0;
  }
  const absl::Duration duration = absl::Seconds(flags.seconds);
  const InferLoadResult result =
      flags.rate > 0 ? load.Open({.duration = duration, .rate = flags.rate, .seed = flags.seed})
                     : load.Closed(duration);
  nlohmann::json latencies = nlohmann::json::array();
  for (const absl::Duration latency : result.latencies) {
    latencies.push_back(absl::ToInt64Nanoseconds(latency) / 1000);
  }
  std::cout << nlohmann::json{{"elapsed_s", absl::ToDoubleSeconds(result.elapsed)},
                              {"failed", result.failed},
                              {"failure", result.failure.ToString()},
                              {"latencies_us", std::move(latencies)}}
            << std::endl;
  return 0;
}

int Run(int argc, char** argv) {
  LoadFlags flags;
  CLI::App app("A load for servers of the Open Inference Protocol, and the echo server to compare them with");
  app.require_subcommand(1);
  CLI::App* echo = app.add_subcommand("echo", "Serves and prints its address; ends when standard input ends");
  CLI::App* load = app.add_subcommand("load", "Sends one request repeatedly; prints latencies as JSON");
  load->add_option("--url", flags.url, "HOST:PORT")->required();
  load->add_option("--model", flags.input.model)->required();
  load->add_option("--shape", flags.input.shape, "Shape of the FP32 tensor to send, e.g. 1,1,1,8,8")
      ->delimiter(',');
  load->add_option("--file", flags.file, "File to send instead, as the only element of a BYTES tensor");
  load->add_option("--clients", flags.clients, "Number of connections")->check(CLI::Range(1, 1024));
  load->add_option("--seconds", flags.seconds)->check(CLI::Range(0.01, 3600.0));
  load->add_option("--rate", flags.rate, "Calls per second, at random times; 0 is a closed loop");
  load->add_option(
          "--deadline-ms", flags.deadline_ms,
          "Deadline of each call, from when it is due; prints counts of outcomes instead of every latency")
      ->check(CLI::PositiveNumber);
  load->add_option("--seed", flags.seed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return echo->parsed() ? ServeEcho() : RunLoad(std::move(flags));
}

}  // namespace
}  // namespace saccade::client

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return saccade::client::Run(argc, argv);
}
