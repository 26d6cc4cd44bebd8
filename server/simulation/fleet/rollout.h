// A new version takes the place of the old one: a rolling update, or a canary with an analysis that undoes
// it.
#pragma once

#include <vector>

#include "server/simulation/fleet/fleet.h"

namespace saccade::server::simulation {

struct RolloutOptions {
  Build build = {.version = 2};
  // Rolling update: how many replicas are replaced at a time, as a share (maxSurge).
  double surge = 0.1;

  // Canary: shares of the replicas that have the new version, each for `pause`; empty for a rolling update.
  std::vector<double> steps = {};
  // The defaults of this and of the analysis are those of the Helm chart.
  Nanos pause = 5 * 60 * kSecond;
  // The analysis: when its first measurement is made after the pods of the first step are ready, how often it
  // measures, and above which a metric's measurement is bad: the shares of faults and of late requests, and
  // the 99 % latency of the new version divided by the old one's. The second bad measurement of one metric
  // undoes the rollout.
  Nanos analysis_delay = 2 * 60 * kSecond;
  Nanos analysis_every = 60 * kSecond;
  double max_faults = 0.01;
  double max_late = 0.05;
  double max_slowdown = 1.25;
  int failure_limit = 1;
};

// Must not outlive the fleet.
class Rollout {
 public:
  Rollout(const RolloutOptions& options, Fleet* fleet) : options_(options), fleet_(fleet) {}

  // Begins the rollout now, which is when an action runs. Call it once.
  void Begin(Nanos now);

  bool undone() const { return undone_; }
  // When the analysis undid it; kNever if it did not.
  Nanos undone_at() const { return undone_at_; }

 private:
  // Replaces so many replicas: new ones are started, and as many old ones end when they are ready.
  void Replace(Nanos now, int count);
  void NextWave(Nanos now);
  void NextStep(Nanos now);
  void Analyse(Nanos now);
  void Undo(Nanos now);
  std::vector<int> ReadyOf(int version) const;

  const RolloutOptions options_;
  Fleet* const fleet_;
  int size_ = 0;
  int replaced_ = 0;
  size_t step_ = 0;
  // Bad measurements of each metric, and what the last measurement had counted of the new and the old
  // version.
  int bad_faults_ = 0;
  int bad_late_ = 0;
  int bad_slowdown_ = 0;
  VersionTally seen_;
  VersionTally seen_old_;
  bool undone_ = false;
  Nanos undone_at_ = kNever;
};

}  // namespace saccade::server::simulation
