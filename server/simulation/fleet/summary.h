// What is told of a run of a fleet.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/simulation/fleet/fleet.h"
#include "server/simulation/plots.h"

namespace saccade::server::simulation {

// A run: the fleet, and a script that is called before it begins.
struct FleetRun {
  std::string name;
  FleetOptions options;
  std::function<void(Fleet&)> script = [](Fleet&) {};
};

class FleetSummary {
 public:
  // Runs it.
  explicit FleetSummary(const FleetRun& run);

  // Calls answered in time, as a share of what could have been, for calls that began in these seconds.
  double OfBound(int from, int to) const;
  // The share of the calls that were answered in time.
  double InTime(int from, int to) const;
  // Attempts for each call.
  double Attempts(int from, int to) const;
  // Requests in a pass, on average.
  double BatchSize(int from, int to) const;
  // The first second after `from` from which on, for five seconds, the share of the bound is at least
  // `share`, counted from `from`; the rest of the run if there is none.
  int RecoveredAfter(int from, double share) const;
  int seconds() const { return static_cast<int>(seconds_.size()); }

  // Calls per second that were in time, as a line over time; and the bound.
  Line Goodput(const std::string& name) const;
  Line Bound() const;

 private:
  template <typename Of>
  double Sum(int from, int to, Of of) const;

  std::vector<Second> seconds_;
};

}  // namespace saccade::server::simulation
