// saccade_bench_load: a load for whatever speaks the Open Inference Protocol, or the echo that it is compared
// with. Its figures are read by tools/bench_server.py, as JSON.
#include <CLI/CLI.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/base/internal/endian.h"
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
  uint64_t seed = 1;
};

// Until standard input ends, so that the echo ends with whoever started it.
int ServeEcho() {
  const EchoServer server;
  std::cout << server.url() << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return 0;
}

// One element of a BYTES tensor.
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

int RunLoad(LoadFlags flags) {
  if (!FillInput(flags, flags.input)) return 2;
  InferLoad load(flags.url, InferRequest(flags.input), flags.clients);
  if (absl::Status status = load.Connect(); !status.ok()) {
    std::cerr << flags.url << ": " << status << '\n';
    return 1;
  }
  const absl::Duration duration = absl::Seconds(flags.seconds);
  const LoadResult result =
      flags.rate > 0 ? load.Open(duration, flags.rate, flags.seed) : load.Closed(duration);
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
  CLI::App app("A load for servers of the Open Inference Protocol, and the echo that they are compared with");
  app.require_subcommand(1);
  CLI::App* echo = app.add_subcommand("echo", "Serves, tells its address, and ends with standard input");
  CLI::App* load = app.add_subcommand("load", "Sends one request again and again; prints latencies as JSON");
  load->add_option("--url", flags.url, "HOST:PORT")->required();
  load->add_option("--model", flags.input.model)->required();
  load->add_option("--shape", flags.input.shape, "Of an FP32 tensor, e.g. 1,1,1,8,8")->delimiter(',');
  load->add_option("--file", flags.file, "Sent as the one element of a BYTES tensor instead");
  load->add_option("--clients", flags.clients, "Connections")->check(CLI::Range(1, 1024));
  load->add_option("--seconds", flags.seconds)->check(CLI::Range(0.01, 3600.0));
  load->add_option("--rate", flags.rate, "Calls a second, at random moments; 0 is a closed loop");
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
