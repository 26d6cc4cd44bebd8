// saccade_simulate: batching and admission on virtual time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/simulation/bench/curve.h"
#include "server/simulation/bench/sections.h"
#include "server/simulation/faults/run_seed.h"
#include "server/simulation/fleet/scenarios.h"

namespace saccade::server::simulation {
namespace {

constexpr const char* kHead =
    "# Scheduling\n\n"
    "Written by `./dev bench scheduling`: the daemon's own scheduler on a simulated clock and device, beside "
    "its "
    "peers'\npolicies, with one configuration for all sections (`max_queue_delay` without bound, batches of "
    "up to "
    "256). Each device computes\na batch of b in L(b) = alpha + beta b, alpha 5 ms. The same seeds give the "
    "same "
    "figures on every machine, but for the\nlast section.\n";

struct BenchFlags {
  BenchOptions options;
  std::vector<std::string> only;
  std::string markdown;
};

void Bench(const BenchFlags& flags) {
  Report report;
  for (const BenchSection& section : BenchSections()) {
    const bool wanted = flags.only.empty() ||
                        std::find(flags.only.begin(), flags.only.end(), section.name) != flags.only.end();
    if (wanted) section.add(flags.options, report);
  }
  const std::string text = absl::StrCat(kHead, report.Markdown());
  if (flags.markdown.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    std::ofstream(flags.markdown) << text;
  }
  std::fprintf(stderr, "%d targets missed\n", report.missed());
}

void AddBench(CLI::App& app, BenchFlags& flags) {
  std::vector<std::string> names;
  for (const BenchSection& section : BenchSections()) names.push_back(section.name);
  CLI::App* const bench =
      app.add_subcommand("bench", "Measure every figure of docs/benchmarks/scheduling.md");
  bench->add_flag("--quick", flags.options.quick, "Run only a tenth of the requests");
  bench->add_option("--only", flags.only, "Sections, e.g. bursts,grid")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  bench->add_option("--markdown", flags.markdown, "Write the report to this file (default: standard output)");
  bench
      ->add_option("--folder", flags.options.folder,
                   "Write the plots to this existing folder (default: no plots)")
      ->check(CLI::ExistingDirectory);
  bench->final_callback([&flags] { Bench(flags); });
}

void AddCurve(CLI::App& app, CurveOptions& options) {
  CLI::App* const curve =
      app.add_subcommand("curve", "Measure one policy at the given rates, or its goodput at 99 %");
  curve->add_option("--policy", options.policy, "Batching policy")
      ->check(CLI::IsMember({"saccade", "eager", "triton", "serving"}))
      ->capture_default_str();
  curve->add_option("--delay", options.delay_ms, "Queue delay of the triton and serving policies, in ms")
      ->capture_default_str();
  curve->add_option("--instances", options.instances, "Instances of the model")->capture_default_str();
  curve->add_option("--buckets", options.buckets, "Number of shapes, all of the same area")
      ->capture_default_str();
  curve->add_flag("--zipf", options.zipf,
                  "Draw the shapes with Zipf weights (1, 1/2, 1/3, ..) instead of equal ones");
  curve->add_option("--cv", options.cv, "Coefficient of variation of the gaps between arrivals")
      ->capture_default_str();
  curve->add_option("--alpha", options.alpha_ms, "Time of a pass per batch, in ms")->capture_default_str();
  curve->add_option("--beta", options.beta_ms, "Time of a pass per picture, in ms")->capture_default_str();
  curve->add_option("--deadline", options.deadline_ms, "Deadline, in ms after the arrival")
      ->capture_default_str();
  curve->add_option("--jitter", options.jitter, "Standard deviation of a pass's time, relative to the time")
      ->capture_default_str();
  curve->add_option("--clients", options.clients, "Number of clients, for the fairness figure")
      ->capture_default_str();
  curve->add_option("--requests", options.requests, "Requests in each run")->capture_default_str();
  curve->add_option("--seeds", options.seeds, "Number of runs with different seeds")->capture_default_str();
  curve->add_option("--rate", options.rates, "Rates in requests per second, e.g. 500,1000")->delimiter(',');
  curve->final_callback([&options] { std::fputs(Curve(options).c_str(), stdout); });
}

struct SeedFlags {
  uint64_t first = 1;
  int64_t count = 1000;
  std::vector<std::string> without;
};

Features FeaturesOf(const SeedFlags& flags) {
  Features features;
  for (int i = 0; i < kFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    const auto& without = flags.without;
    if (std::find(without.begin(), without.end(), NameOf(feature)) != without.end())
      features.LeaveOut(feature);
  }
  return features;
}

// Runs the seeds. If one fails, shrinks it, prints how to replay it, and returns false.
bool RunSeeds(const SeedFlags& flags) {
  const Features features = FeaturesOf(flags);
  int64_t requests = 0;
  const std::clock_t began = std::clock();
  for (int64_t i = 0; i < flags.count; ++i) {
    const uint64_t seed = flags.first + static_cast<uint64_t>(i);
    const SeedResult result = RunSeed(seed, features);
    requests += result.requests;
    if (flags.count == 1) {
      std::printf("seed %llu: %lld requests, trace %016llx\n", static_cast<unsigned long long>(seed),
                  static_cast<long long>(result.requests),
                  static_cast<unsigned long long>(result.trace_hash));
    }
    if (result.violations.empty()) continue;
    for (const std::string& violation : result.violations) std::printf("  %s\n", violation.c_str());
    const Features fewer = Shrink(seed, features);
    std::string without;
    for (int f = 0; f < kFeatures; ++f) {
      const auto feature = static_cast<Feature>(f);
      if (!fewer.has(feature))
        absl::StrAppend(&without, without.empty() ? " --without " : ",", NameOf(feature));
    }
    std::printf("seed %llu failed; to replay: ./dev simulate --seed %llu%s\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed),
                without.c_str());
    return false;
  }
  const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::printf("%lld seeds passed: %lld requests in %.1f s, %.0f k a second\n",
              static_cast<long long>(flags.count), static_cast<long long>(requests), seconds,
              static_cast<double>(requests) / seconds / 1e3);
  return true;
}

void AddSeeds(CLI::App& app, SeedFlags& flags, bool& passed) {
  std::vector<std::string> names;
  for (int i = 0; i < kFeatures; ++i) names.emplace_back(NameOf(static_cast<Feature>(i)));
  CLI::App* const seeds =
      app.add_subcommand("seeds", "Simulate random scenarios with faults and check every invariant");
  CLI::Option* const count = seeds->add_option("--seeds", flags.count, "Number of seeds")
                                 ->check(CLI::PositiveNumber)
                                 ->capture_default_str();
  CLI::Option* const one =
      seeds->add_option("--seed", flags.first, "Run this seed only, or with --seeds, the first seed");
  seeds->add_option("--without", flags.without, "Features to leave out of the scenarios")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  seeds->final_callback([&flags, &passed, count, one] {
    if (one->count() > 0 && count->count() == 0) flags.count = 1;
    passed = RunSeeds(flags);
  });
}

// The commit of the working directory, with "-dirty" if files have changed since; "unknown" without git.
std::string Commit() {
  std::string text;
  if (std::FILE* const git = popen("git describe --always --dirty 2>/dev/null", "r"); git != nullptr) {
    for (int next = std::fgetc(git); next != EOF && next != '\n'; next = std::fgetc(git))
      text += static_cast<char>(next);
    pclose(git);
  }
  return text.empty() ? "unknown" : text;
}

constexpr const char* kFleetHead =
    "# A fleet\n\n"
    "Written by `./dev simulate --fleet` on $0, commit $1: the daemon's own admission and scheduler in every "
    "replica, on a simulated clock, with\nclients that balance and repeat their calls. The same seed gives "
    "the same figures on every "
    "machine. What "
    "follows from them is\nin [fleet.md](../fleet.md).\n\n";

struct FleetFlags {
  FleetBenchOptions options;
  std::vector<std::string> only;
  std::string markdown;
  bool strict = false;
};

// Returns false if a target was missed and that counts.
bool RunFleet(const FleetFlags& flags) {
  Report report;
  const std::clock_t began = std::clock();
  for (const auto& [name, add] : FleetSections()) {
    if (flags.only.empty() || std::find(flags.only.begin(), flags.only.end(), name) != flags.only.end())
      add(flags.options, report);
  }
  FleetOptions basic = BasicFleet(flags.options, 1, kSecond);
  const std::string text = absl::StrCat(
      absl::Substitute(kFleetHead, absl::FormatTime("%F", absl::Now(), absl::LocalTimeZone()), Commit()),
      basic.replicas, " replicas in ", basic.zones, " zones and ", basic.clients,
      " clients. A replica computes a batch of b in ", ToMilliseconds(basic.latency.alpha), " + ",
      ToMilliseconds(basic.latency.beta), " b ms (5 % jitter), with the shipped\ndefaults: batches of up to ",
      basic.batcher.max_batch_size, ", queues of ", basic.batcher.max_queue_size, ", ",
      basic.admission.max_inflight_requests, " requests in flight. Deadline ", ToMilliseconds(basic.deadline),
      " ms. The bound is the smaller of\nwhat is asked for and what the ready replicas can do, ",
      Rounded(CapacityOf(basic), 1), " requests per second each.\n", report.Markdown());
  if (flags.markdown.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    std::ofstream(flags.markdown) << text;
  }
  std::fprintf(stderr, "%d targets missed, %.0f s of processor time\n", report.missed(),
               static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
  return !flags.strict || report.missed() == 0;
}

void AddFleet(CLI::App& app, FleetFlags& flags, bool& passed) {
  std::vector<std::string> names;
  for (const auto& [name, add] : FleetSections()) names.push_back(name);
  CLI::App* const fleet = app.add_subcommand("fleet", "Measure every figure of docs/benchmarks/fleet.md");
  fleet->add_option("--replicas", flags.options.replicas, "Replicas at the begin of each scenario")
      ->check(CLI::Range(3, 10'000))
      ->capture_default_str();
  fleet->add_option("--only", flags.only, "Scenarios, e.g. retries,zone")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  fleet->add_option("--seed", flags.options.seed, "Seed of all random numbers")->capture_default_str();
  fleet->add_option("--markdown", flags.markdown, "Write the report to this file (default: standard output)");
  fleet
      ->add_option("--folder", flags.options.folder,
                   "Write the plots to this existing folder (default: no plots)")
      ->check(CLI::ExistingDirectory);
  fleet->add_flag("--strict", flags.strict, "Exit with 1 if a target is missed");
  fleet->final_callback([&flags, &passed] { passed = RunFleet(flags); });
}

int Main(int argc, char** argv) {
  // The packaged Abseil looks for deadlocks at each lock, which takes a twentieth of the time. The simulation
  // has one thread; the daemon does the same.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("Simulates the daemon's batching, its peers' and the theoretical bounds");
  app.require_subcommand(1);
  BenchFlags bench;
  AddBench(app, bench);
  CurveOptions curve;
  AddCurve(app, curve);
  SeedFlags seeds;
  bool passed = true;
  AddSeeds(app, seeds, passed);
  FleetFlags fleet;
  AddFleet(app, fleet, passed);
  CLI11_PARSE(app, argc, argv);
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace saccade::server::simulation

int main(int argc, char** argv) { return saccade::server::simulation::Main(argc, argv); }
