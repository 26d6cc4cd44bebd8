// Scenarios in which replicas fail, and the list of all scenarios.
#include "server/simulation/fleet/scenarios.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "server/simulation/fleet/rollout.h"

namespace saccade::server::simulation {
namespace {

constexpr std::pair<const char*, Balancing> kChoices[] = {{"round robin", Balancing::kRoundRobin},
                                                          {"least loaded", Balancing::kLeastLoaded},
                                                          {"weighted", Balancing::kWeighted},
                                                          {"subsets of 20", Balancing::kSubset}};
constexpr int kBegin = 20;

}  // namespace

std::vector<std::pair<std::string, FleetSection>> FleetSections() {
  return {{"steady", AddSteady},      {"retries", AddRetryStorm}, {"slow", AddSlowReplicas},
          {"version", AddBadVersion}, {"zone", AddZoneLoss},      {"autoscaling", AddAutoscaling}};
}

void AddSlowReplicas(const FleetBenchOptions& bench, Report& report) {
  report.Section("Slow replicas",
                 "Load 0.7; from second 20 on one replica in fifty computes at a fifth of its speed, and "
                 "says that it is ready. The bound counts them as if they were well.");
  for (const auto& [name, balancing] : kChoices) {
    FleetOptions options = BasicFleet(bench, 0.7, 62 * kSecond);
    options.balancing = balancing;
    const FleetSummary summary({.name = name, .options = options, .script = [](Fleet& fleet) {
                                  fleet.At(kBegin * kSecond, [&fleet](Nanos) {
                                    for (int i = 0; i < fleet.replicas(); i += 50)
                                      fleet.replica(i).set_slowdown(5);
                                  });
                                }});
    report.AtLeast(absl::StrCat(name, ": of the bound, while they are slow"), summary.OfBound(kBegin, 60),
                   0.95);
    report.Note(absl::StrCat(name, ": attempts for a call"), Rounded(summary.Attempts(kBegin, 60), 3));
  }
}

void AddBadVersion(const FleetBenchOptions& bench, Report& report) {
  report.Section("A bad version",
                 "Load 0.7; from second 20 on a version is rolled out that fails one pass in five, or takes "
                 "three times as long; a pod is "
                 "ready after 20 s. As a rolling update of a tenth at a time (maxSurge 10 %), and as the "
                 "canary of the chart with its "
                 "analysis: 5 %, 25 %, 50 %, for five minutes each, so only the first step is played; the "
                 "analysis measures two minutes after the pods of that step are ready, and every minute from "
                 "then on. The bound counts its replicas as if it were good.");
  const std::pair<const char*, Build> builds[] = {{"good", {.version = 2}},
                                                  {"failing", {.version = 2, .failing = 0.2}},
                                                  {"slow", {.version = 2, .slow = 3}}};
  for (const auto& [kind, build] : builds) {
    std::vector<Line> lines;
    for (const bool canary : {false, true}) {
      const std::string name = absl::StrCat(kind, " version, ", canary ? "canary" : "rolling update");
      FleetOptions options = BasicFleet(bench, 0.7, 302 * kSecond);
      options.start_up = 20 * kSecond;
      RolloutOptions rollout_options = {.build = build};
      if (canary) rollout_options.steps = {0.05, 0.25, 0.5};
      std::unique_ptr<Rollout> rollout;
      const FleetSummary summary({.name = name, .options = options, .script = [&](Fleet& fleet) {
                                    rollout = std::make_unique<Rollout>(rollout_options, &fleet);
                                    fleet.At(kBegin * kSecond, [&](Nanos now) { rollout->Begin(now); });
                                  }});
      report.AtLeast(absl::StrCat(name, ": of the bound, in 280 s"), summary.OfBound(kBegin, 300), 0.95);
      report.Note(absl::StrCat(name, ": of the bound, in the last minute"),
                  Rounded(summary.OfBound(240, 300), 3));
      if (canary) {
        report.Note(absl::StrCat(name, ": undone"),
                    rollout->undone()
                        ? absl::StrCat("after ", Rounded(rollout->undone_at() / kSecond - kBegin, 0), " s")
                        : std::string("no"));
      }
      lines.push_back(summary.Goodput(canary ? "canary" : "rolling update"));
      if (canary) lines.push_back(summary.Bound());
    }
    if (build.failing > 0 || build.slow > 1) {
      WritePlot({.folder = bench.folder}, report, absl::StrCat("Goodput with a ", kind, " version"),
                absl::StrCat("fleet-version-", kind, ".svg"),
                LinePlot("seconds", "calls in time per second", lines));
    }
  }
}

void AddZoneLoss(const FleetBenchOptions& bench, Report& report) {
  report.Section(
      "A zone is lost",
      "Load 0.6, which two of three zones can do; in second 20 the nodes of a zone vanish. Nobody is "
      "told: Kubernetes takes their pods off the lists after 40 s, and a request that was sent there has "
      "no answer. The shipped client gives the connections up after 15 s (a ping every 10, 5 for its "
      "answer). With attempt_timeout=0.7 it gives an attempt up after 700 ms and goes to another replica "
      "at once, with and without the budget of 100 tokens.");
  struct Case {
    std::string name;
    Balancing balancing = Balancing::kRoundRobin;
    bool keepalive = true;
    bool short_attempts = false;
    bool budget = true;
  };
  const Case cases[] = {{.name = "shipped client"},
                        {.name = "least loaded", .balancing = Balancing::kLeastLoaded},
                        {.name = "no keepalive", .keepalive = false},
                        {.name = "700 ms", .short_attempts = true},
                        {.name = "700 ms, no budget", .short_attempts = true, .budget = false},
                        {.name = "700 ms, no budget, no keepalive",
                         .keepalive = false,
                         .short_attempts = true,
                         .budget = false}};
  std::vector<Line> lines;
  for (const Case& one : cases) {
    FleetOptions options = BasicFleet(bench, 0.6, 122 * kSecond);
    options.balancing = one.balancing;
    if (!one.keepalive) options.keepalive = kNever;
    if (!one.budget) options.retry.budget = 0;
    if (one.short_attempts) options.retry.attempt_timeout = 700 * kMillisecond;
    const FleetSummary summary({.name = one.name, .options = options, .script = [](Fleet& fleet) {
                                  fleet.At(kBegin * kSecond, [&fleet](Nanos) {
                                    for (int i = 0; i < fleet.replicas(); ++i)
                                      if (fleet.replica(i).zone() == 0) fleet.Vanish(i);
                                  });
                                }});
    report.AtLeast(absl::StrCat(one.name, ": of the bound, in the first minute"),
                   summary.OfBound(kBegin, kBegin + 60), 0.95);
    report.Note(absl::StrCat(one.name, ": recovered after"),
                absl::StrCat(summary.RecoveredAfter(kBegin, 0.95), " s"));
    if (one.balancing == Balancing::kRoundRobin) lines.push_back(summary.Goodput(one.name));
  }
  WritePlot({.folder = bench.folder}, report, "Goodput when a zone is lost", "fleet-zone.svg",
            LinePlot("seconds", "calls in time per second", lines));
}

}  // namespace saccade::server::simulation
