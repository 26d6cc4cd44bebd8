// saccade_bench_core: what scheduling costs with many models and devices, without networks and without
// clients.
#include <iomanip>
#include <iostream>
#include <vector>

#include "CLI/CLI.hpp"
#include "server/batching/bench/decisions.h"
#include "server/batching/bench/traffic.h"

namespace saccade::server::bench {
namespace {

double Micros(absl::Duration time) { return absl::ToDoubleMicroseconds(time); }

void PrintDecisions(double seconds) {
  std::cout << "\nOne thread: CPU time of a Push with its share of Next and Finished\n\n"
            << "| models and devices | us |\n|---|---|\n";
  for (const World& world : std::vector<World>{
           {1, 1, 1}, {200, 1, 1}, {50, 1, 50}, {200, 1, 200}, {1, 8, 1}, {200, 8, 1}, {200, 8, 200}}) {
    std::cout << "| " << world.Name() << " | " << Micros(TimeOfDecision(world, seconds)) << " |" << std::endl;
  }
}

void PrintTraffic(double seconds) {
  struct Case {
    World world;
    double rate = 0;
    double speed = 1;
  };
  std::cout
      << "\nReal threads: one for each instance, and one that sends\n\n"
      << "| models and devices | requests/s asked | sent | CPU us a request | Submit median us | 99 % us "
         "| rejected |\n|---|---|---|---|---|---|---|\n";
  for (const auto& [world, rate, speed] : std::vector<Case>{
           {{1, 1, 1}, 1200, 1}, {{200, 1, 1}, 1200, 1}, {{200, 8, 1}, 1200, 1}, {{200, 8, 200}, 1e5, 2}}) {
    const Traffic traffic = Send(world, rate, speed, seconds);
    std::cout << "| " << world.Name() << " | " << rate << " | " << traffic.requests_per_second << " | "
              << Micros(traffic.cpu) << " | " << Micros(traffic.submit_median) << " | "
              << Micros(traffic.submit_p99) << " | " << traffic.rejected << " |" << std::endl;
  }
}

int Run(int argc, char** argv) {
  CLI::App app("What scheduling costs with many models and devices.", "saccade_bench_core");
  double seconds = 2;
  app.add_option("--seconds", seconds, "Length of each measurement.")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::cout << std::fixed << std::setprecision(2);
  PrintDecisions(seconds);
  PrintTraffic(seconds);
  return 0;
}

}  // namespace
}  // namespace saccade::server::bench

int main(int argc, char** argv) { return saccade::server::bench::Run(argc, argv); }
