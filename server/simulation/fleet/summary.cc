#include "server/simulation/fleet/summary.h"

#include <algorithm>

namespace saccade::server::simulation {

FleetSummary::FleetSummary(const FleetRun& run) {
  Fleet fleet(run.options);
  run.script(fleet);
  fleet.Run();
  seconds_ = fleet.seconds();
  // The calls of the last seconds could not end.
  const auto whole = static_cast<size_t>((run.options.until - run.options.deadline) / kSecond);
  if (seconds_.size() > whole) seconds_.resize(whole);
}

template <typename Of>
double FleetSummary::Sum(int from, int to, Of of) const {
  double sum = 0;
  for (int i = from; i < std::min(to, seconds()); ++i) sum += static_cast<double>(of(seconds_[i]));
  return sum;
}

namespace {

double InTimeOf(const Second& second) { return static_cast<double>(second.in_time); }
double CallsOf(const Second& second) { return static_cast<double>(second.calls); }
double AttemptsOf(const Second& second) { return static_cast<double>(second.attempts); }
double PassesOf(const Second& second) { return static_cast<double>(second.passes); }
double ComputedOf(const Second& second) { return static_cast<double>(second.computed); }
// No more calls can be in time than there were.
double BoundOf(const Second& second) { return std::min(second.bound, static_cast<double>(second.calls)); }

}  // namespace

double FleetSummary::OfBound(int from, int to) const {
  return Sum(from, to, InTimeOf) / std::max(1.0, Sum(from, to, BoundOf));
}

double FleetSummary::InTime(int from, int to) const {
  return Sum(from, to, InTimeOf) / std::max(1.0, Sum(from, to, CallsOf));
}

double FleetSummary::Attempts(int from, int to) const {
  return Sum(from, to, AttemptsOf) / std::max(1.0, Sum(from, to, CallsOf));
}

double FleetSummary::BatchSize(int from, int to) const {
  return Sum(from, to, ComputedOf) / std::max(1.0, Sum(from, to, PassesOf));
}

int FleetSummary::RecoveredAfter(int from, double share) const {
  constexpr int kFor = 5;
  for (int i = from; i + kFor <= seconds(); ++i) {
    if (OfBound(i, i + kFor) >= share) return i - from;
  }
  return seconds() - from;
}

Line FleetSummary::Goodput(const std::string& name) const {
  Line line = {name, {}};
  for (int i = 0; i < seconds(); ++i) line.points.emplace_back(i, InTimeOf(seconds_[i]));
  return line;
}

Line FleetSummary::Bound() const {
  Line line = {"bound", {}};
  for (int i = 0; i < seconds(); ++i) line.points.emplace_back(i, BoundOf(seconds_[i]));
  return line;
}

}  // namespace saccade::server::simulation
