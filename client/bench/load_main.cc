// saccade_bench_load: a load for servers of the Open Inference Protocol, the echo server that they are
// compared with, and the load's request for other clients. tools/bench_server and tools/overload read the
// load's output, which is JSON.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/base/internal/endian.h"
#include "client/bench/echo_server.h"
#include "client/load/infer_calls.h"
#include "client/load/load.h"
#include "client/load/outcomes.h"

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

nlohmann::json ToJson(const FailureCounts& failures) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [code, failure] : failures) json[code] = {failure.calls, failure.first_message};
  return json;
}

nlohmann::json OutcomesJson(const LoadResult& result, const LoadFlags& flags, double processor_seconds) {
  const LoadOutcomes outcomes = CountOutcomes(result, flags.clients, absl::Milliseconds(flags.deadline_ms));
  const auto count = [&](CallOutcome outcome) { return outcomes.counts[static_cast<size_t>(outcome)]; };
  return {{"elapsed_s", absl::ToDoubleSeconds(result.elapsed)},
          {"sent", result.samples.size()},
          {"not_sent", result.not_sent},
          {"in_time", count(CallOutcome::kInTime)},
          {"late", count(CallOutcome::kLate)},
          {"refused", count(CallOutcome::kRefused)},
          {"failed", count(CallOutcome::kFailed)},
          {"refused_by_reason", outcomes.refused},
          {"failed_by_code", ToJson(outcomes.failed)},
          {"in_time_by_client", outcomes.in_time_by_connection},
          {"seconds", outcomes.seconds},
          {"answers_ms", ToJson(outcomes.answers)},
          {"refusals_ms", ToJson(outcomes.refusals)},
          {"behind_ms", ToJson(outcomes.held)},
          {"processor_s", processor_seconds}};
}

nlohmann::json LatenciesJson(const LoadResult& result) {
  nlohmann::json latencies = nlohmann::json::array();
  for (const LoadSample& sample : result.samples) {
    if (sample.status.ok()) latencies.push_back(absl::ToInt64Nanoseconds(sample.latency()) / 1000);
  }
  const size_t failed = result.samples.size() - latencies.size();
  return {{"elapsed_s", absl::ToDoubleSeconds(result.elapsed)},
          {"not_sent", result.not_sent},
          {"failed", failed},
          {"failure", result.FirstFailure().ToString()},
          {"latencies_us", std::move(latencies)}};
}

// Completes `flags.input`. Writes the request as a gRPC message: one byte that says that it is not
// compressed, its length in four bytes, and the request.
int WriteRequest(LoadFlags& flags) {
  if (!FillInput(flags, flags.input)) return 2;
  const std::string request = InferRequest(flags.input);
  std::string head(5, '\0');
  absl::big_endian::Store32(&head[1], static_cast<uint32_t>(request.size()));
  std::cout << head << request << std::flush;
  return 0;
}

void AddInputOptions(CLI::App& command, LoadFlags& flags) {
  command.add_option("--model", flags.input.model)->required();
  command.add_option("--shape", flags.input.shape, "Shape of the FP32 tensor to send, e.g. 1,1,1,8,8")
      ->delimiter(',');
  command.add_option("--file", flags.file, "File to send instead, as the only element of a BYTES tensor");
}

// Completes `flags.input`.
int SendLoad(LoadFlags& flags) {
  const bool has_deadline = flags.deadline_ms > 0;
  if (has_deadline && flags.rate <= 0) {
    std::cerr << "--deadline-ms needs --rate: in a closed loop calls have no due time\n";
    return 2;
  }
  if (!FillInput(flags, flags.input)) return 2;
  const std::string request = InferRequest(flags.input);
  InferCalls calls(flags.url, request, flags.clients);
  if (absl::Status status = WarmUp(flags.clients, calls.starter()); !status.ok()) {
    std::cerr << flags.url << ": " << status << '\n';
    return 1;
  }
  const double before = ProcessorSeconds();
  const LoadResult result =
      RunLoad({.rate = flags.rate,
               .duration = absl::Seconds(flags.seconds),
               .connections = flags.clients,
               .seed = flags.seed,
               .stop_after_failure = true},
              has_deadline ? calls.starter(absl::Milliseconds(flags.deadline_ms)) : calls.starter());
  const double processor_seconds = ProcessorSeconds() - before;
  std::cout << (has_deadline ? OutcomesJson(result, flags, processor_seconds) : LatenciesJson(result))
            << std::endl;
  return 0;
}

int Run(int argc, char** argv) {
  LoadFlags flags;
  CLI::App app("A load for servers of the Open Inference Protocol, and the echo server to compare them with");
  app.require_subcommand(1);
  CLI::App* echo = app.add_subcommand("echo", "Serves and prints its address; ends when standard input ends");
  CLI::App* request = app.add_subcommand("request", "Writes the load's request, framed as a gRPC message");
  AddInputOptions(*request, flags);
  CLI::App* load = app.add_subcommand("load", "Sends one request repeatedly; prints latencies as JSON");
  load->add_option("--url", flags.url, "HOST:PORT")->required();
  AddInputOptions(*load, flags);
  load->add_option("--clients", flags.clients, "Number of connections")->check(CLI::Range(1, 1024));
  load->add_option("--seconds", flags.seconds)->check(CLI::Range(0.01, 3600.0));
  load->add_option("--rate", flags.rate, "Calls per second, at random times; 0 is a closed loop")
      ->check(CLI::Range(0.0, 1e6));
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
  if (echo->parsed()) return ServeEcho();
  return request->parsed() ? WriteRequest(flags) : SendLoad(flags);
}

}  // namespace
}  // namespace saccade::client

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return saccade::client::Run(argc, argv);
}
