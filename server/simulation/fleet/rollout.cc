#include "server/simulation/fleet/rollout.h"

#include <algorithm>
#include <cmath>

namespace saccade::server::simulation {
namespace {

// Fewer ended requests give no verdict.
constexpr int64_t kMinEnded = 50;

}  // namespace

std::vector<int> Rollout::ReadyOf(int version) const {
  std::vector<int> found;
  for (int i = 0; i < fleet_->replicas(); ++i) {
    const Replica& replica = fleet_->replica(i);
    if (replica.state == ReplicaState::kReady && replica.build().version == version) found.push_back(i);
  }
  return found;
}

void Rollout::Begin(Nanos now) {
  size_ = static_cast<int>(fleet_->Ready().size());
  if (options_.steps.empty()) return NextWave(now);
  NextStep(now);
  fleet_->At(now + fleet_->options().start_up + options_.analysis_delay,
             [this](Nanos later) { Analyse(later); });
}

void Rollout::Replace(Nanos now, int count) {
  count = std::min(count, size_ - replaced_);
  replaced_ += count;
  for (int i = 0; i < count; ++i) fleet_->Start(options_.build, fleet_->options().start_up);
  // Kubernetes ends an old pod for each new one that is ready.
  fleet_->At(now + fleet_->options().start_up + kSecond, [this, count](Nanos) {
    if (undone_) return;
    const std::vector<int> old = ReadyOf(1);
    for (int i = 0; i < std::min(count, static_cast<int>(old.size())); ++i) fleet_->Drain(old[i]);
  });
}

void Rollout::NextWave(Nanos now) {
  if (replaced_ >= size_) return;
  Replace(now, std::max(1, static_cast<int>(std::ceil(options_.surge * size_))));
  fleet_->At(now + fleet_->options().start_up + 2 * kSecond, [this](Nanos later) { NextWave(later); });
}

void Rollout::NextStep(Nanos now) {
  if (undone_) return;
  const double share = step_ < options_.steps.size() ? options_.steps[step_] : 1;
  Replace(now, static_cast<int>(std::ceil(share * size_)) - replaced_);
  if (++step_ > options_.steps.size()) return;
  fleet_->At(now + fleet_->options().start_up + options_.pause, [this](Nanos later) { NextStep(later); });
}

void Rollout::Analyse(Nanos now) {
  if (undone_) return;
  const VersionTally all = fleet_->TallyOf(options_.build.version);
  const int64_t ended = all.ended - seen_.ended;
  if (ended >= kMinEnded) {
    const double faults = static_cast<double>(all.faults - seen_.faults) / static_cast<double>(ended);
    const double late = static_cast<double>(all.late - seen_.late) / static_cast<double>(ended);
    const VersionTally old = fleet_->TallyOf(1);
    const Nanos before = SlowestHundredth(seen_old_, old);
    const Nanos after = SlowestHundredth(seen_, all);
    bad_faults_ += faults > options_.max_faults;
    bad_late_ += late > options_.max_late;
    bad_slowdown_ += before > Nanos() && static_cast<double>(after.count()) >
                                             options_.max_slowdown * static_cast<double>(before.count());
    seen_ = all;
    seen_old_ = old;
  }
  if (std::max({bad_faults_, bad_late_, bad_slowdown_}) > options_.failure_limit) return Undo(now);
  fleet_->At(now + options_.analysis_every, [this](Nanos later) { Analyse(later); });
}

void Rollout::Undo(Nanos now) {
  undone_ = true;
  undone_at_ = now;
  const int missing = size_ - static_cast<int>(ReadyOf(1).size());
  for (int i = 0; i < missing; ++i) fleet_->Start(Build{}, fleet_->options().start_up);
  // The chart's canary has maxUnavailable 0: the bad ones stay until the old ones are back.
  fleet_->At(now + (missing > 0 ? fleet_->options().start_up + kSecond : Nanos()), [this](Nanos) {
    for (int i = 0; i < fleet_->replicas(); ++i) {
      if (fleet_->replica(i).build().version == options_.build.version) fleet_->Drain(i);
    }
  });
}

}  // namespace saccade::server::simulation
