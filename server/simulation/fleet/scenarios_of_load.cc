// Scenarios in which the load changes and the replicas do what they should.
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/simulation/bounds.h"
#include "server/simulation/fleet/autoscaler.h"
#include "server/simulation/fleet/scenarios.h"

namespace saccade::server::simulation {
namespace {

constexpr std::pair<const char*, Balancing> kBalancings[] = {{"round robin", Balancing::kRoundRobin},
                                                             {"least loaded", Balancing::kLeastLoaded},
                                                             {"weighted", Balancing::kWeighted},
                                                             {"subsets of 20", Balancing::kSubset}};

struct NamedClient {
  std::string name;
  RetryOptions retry = {};
  Balancing balancing = Balancing::kRoundRobin;
  bool same_order = false;
};

std::vector<NamedClient> Clients() {
  RetryOptions none;
  none.attempts = 1;
  RetryOptions unbounded;
  unbounded.budget = 0;
  RetryOptions careful;
  careful.at_once = true;
  careful.attempt_timeout = 500 * kMillisecond;
  RetryOptions careless = careful;
  careless.budget = 0;
  return {{"no retries", none},
          {"shipped"},
          {"least loaded", {}, Balancing::kLeastLoaded},
          {"same order", {}, Balancing::kRoundRobin, true},
          {"same order, no budget", unbounded, Balancing::kRoundRobin, true},
          {"careless", careless},
          {"careless, budget", careful}};
}

}  // namespace

double CapacityOf(const FleetOptions& options) {
  return OverloadGoodput(options.latency, 1, 1e9, options.deadline, options.batcher.max_batch_size);
}

FleetOptions BasicFleet(const FleetBenchOptions& bench, double load, Nanos until) {
  FleetOptions options;
  options.replicas = bench.replicas;
  options.clients = std::max(20, bench.replicas / 5);
  options.seed = bench.seed;
  options.rate = load * CapacityOf(options) * bench.replicas;
  options.until = until;
  return options;
}

void AddSteady(const FleetBenchOptions& bench, Report& report) {
  report.Section("Steady load",
                 "Half a minute at a load that all replicas together can just do, and at one that they "
                 "cannot; the first ten seconds are not counted.");
  for (const double load : {0.8, 0.9, 1.5}) {
    for (const auto& [name, balancing] : kBalancings) {
      FleetOptions options = BasicFleet(bench, load, 42 * kSecond);
      options.balancing = balancing;
      const FleetSummary summary({.name = name, .options = options});
      report.AtLeast(absl::StrCat("load ", load, ", ", name, ": of the bound"), summary.OfBound(10, 40),
                     0.95);
      report.Note(absl::StrCat("load ", load, ", ", name, ": attempts for a call"),
                  Rounded(summary.Attempts(10, 40), 2));
    }
  }
}

void AddRetryStorm(const FleetBenchOptions& bench, Report& report) {
  report.Section(
      "A retry storm",
      "Load 0.8, and 1.6 for ten seconds from second 20 on. Clients that do not repeat calls; the "
      "Python client as it is shipped (four attempts, the daemon's hints, a budget of 100 tokens with "
      "0.1 for a success, round robin over a list that is shuffled); the same with the better of two "
      "replicas; the same with a list that all clients have in the same order, with and without the "
      "budget; careless ones that give an attempt up after 500 ms and repeat it at once, three times, "
      "without and with the budget. Recovered is a fleet with 95 % of the bound for five seconds. Calls "
      "of the last second of the ten may be answered after it, so there may be more than the bound.");
  std::vector<Line> lines;
  for (const NamedClient& client : Clients()) {
    FleetOptions options = BasicFleet(bench, 0.8, 92 * kSecond);
    options.retry = client.retry;
    options.balancing = client.balancing;
    options.same_order = client.same_order;
    const double rate = options.rate;
    const FleetSummary summary({.name = client.name, .options = options, .script = [rate](Fleet& fleet) {
                                  fleet.At(20 * kSecond, [&fleet, rate](Nanos) { fleet.SetRate(2 * rate); });
                                  fleet.At(30 * kSecond, [&fleet, rate](Nanos) { fleet.SetRate(rate); });
                                }});
    const auto row = [&](const std::string& what, const std::string& figure) {
      report.Note(absl::StrCat(client.name, ": ", what), figure);
    };
    report.AtLeast(absl::StrCat(client.name, ": of the bound, in the ten seconds"), summary.OfBound(20, 30),
                   0.95);
    report.AtLeast(absl::StrCat(client.name, ": of the bound, in the minute after"), summary.OfBound(30, 90),
                   0.95);
    const int recovered = summary.RecoveredAfter(30, 0.95);
    row("recovered after",
        recovered < 55 ? absl::StrCat(recovered, " s") : std::string("not within a minute"));
    row("attempts for a call, in the ten seconds and in the minute after",
        absl::StrCat(Rounded(summary.Attempts(20, 30), 2), ", ", Rounded(summary.Attempts(30, 90), 2)));
    row("requests in a pass, in the ten seconds and in the minute after",
        absl::StrCat(Rounded(summary.BatchSize(20, 30), 1), ", ", Rounded(summary.BatchSize(30, 90), 1)));
    // It lies on the bound, as the first does, and the plot has six colours.
    if (client.name != "same order") lines.push_back(summary.Goodput(client.name));
  }
  WritePlot({.folder = bench.folder}, report, "Goodput in a retry storm", "fleet-retries.svg",
            LinePlot("seconds", "calls in time per second", lines));
}

void AddAutoscaling(const FleetBenchOptions& bench, Report& report) {
  report.Section("Autoscaling",
                 "Load 0.6 of a third of the replicas, and 1.8 of it, all that two thirds can do, from "
                 "second 60 on. The "
                 "autoscaler decides every 15 s on the mean of a minute, with the target 0.7; a pod is ready "
                 "after 45 s. "
                 "The bound is what the replicas that are ready can do, so it does not count the wait.");
  std::vector<Line> lines;
  using Metric = AutoscalerOptions::Metric;
  const std::pair<const char*, Metric> metrics[] = {{"demand", Metric::kDemand},
                                                    {"processor time", Metric::kUtilization}};
  for (const auto& [name, metric] : metrics) {
    FleetBenchOptions third = bench;
    third.replicas = std::max(1, bench.replicas / 3);
    const FleetOptions options = BasicFleet(third, 0.6, 362 * kSecond);
    std::unique_ptr<Autoscaler> autoscaler;
    const FleetSummary summary(
        {.name = name, .options = options, .script = [&, metric = metric](Fleet& fleet) {
           autoscaler = std::make_unique<Autoscaler>(AutoscalerOptions{.metric = metric}, &fleet);
           autoscaler->Begin();
           const double more = 3 * fleet.options().rate;
           fleet.At(60 * kSecond, [&fleet, more](Nanos) { fleet.SetRate(more); });
         }});
    report.AtLeast(absl::StrCat("by ", name, ": of the bound"), summary.OfBound(60, 360), 0.95);
    int enough = 60;
    while (enough < summary.seconds() && summary.InTime(enough, enough + 5) < 0.95) ++enough;
    report.Note(absl::StrCat("by ", name, ": 95 % of all calls are in time again after"),
                enough < summary.seconds() ? absl::StrCat(enough - 60, " s")
                                           : std::string("not within five minutes"));
    report.Note(absl::StrCat("by ", name, ": of all calls, in time in these five minutes"),
                Rounded(summary.InTime(60, 360), 3));
    lines.push_back(summary.Goodput(absl::StrCat("by ", name)));
  }
  WritePlot({.folder = bench.folder}, report, "Goodput while the fleet grows", "fleet-autoscaling.svg",
            LinePlot("seconds", "calls in time per second", lines));
}

}  // namespace saccade::server::simulation
