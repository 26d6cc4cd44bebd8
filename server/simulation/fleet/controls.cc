// How replicas come and go, and what clients learn of it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "server/simulation/bounds.h"
#include "server/simulation/fleet/fleet.h"

namespace saccade::server::simulation {
namespace {

// Far more requests per second than a replica can answer.
constexpr double kAnyRate = 1e9;

}  // namespace

Fleet::Fleet(const FleetOptions& options) : options_(options), random_(options.seed), rate_(options.rate) {
  for (int i = 0; i < options_.replicas; ++i) Start(Build{}, Nanos());
  for (int i = 0; i < options_.clients; ++i) {
    clients_.push_back(
        {.balancer = Balancer(options_.balancing, options_.subset, i, random_.Bits(), options_.same_order),
         .budget = RetryBudget(options_.retry.budget, options_.retry.budget_ratio)});
    clients_.back().balancer.SetReplicas(Ready());
  }
}

Fleet::~Fleet() {
  noticed_ = false;
  for (auto& replica : replicas_) replica->Destroy();
}

int Fleet::Start(const Build& build, Nanos start_up) {
  const int number = replicas();
  replicas_.push_back(
      std::make_unique<Replica>(options_, build, number % options_.zones, random_.Bits(), &clock_));
  const auto open = [this, number](Nanos now) {
    Replica& replica = *replicas_[number];
    if (replica.state != ReplicaState::kStarting) return;
    replica.state = ReplicaState::kReady;
    replica.TakeUtilization(now);
    replica.TakeDemand(now);
    TellClients();
  };
  if (start_up > Nanos()) {
    At(now_ + start_up, open);
  } else {
    open(now_);
  }
  return number;
}

void Fleet::Drain(int number) {
  Replica& replica = *replicas_[number];
  if (replica.state == ReplicaState::kStarting) replica.state = ReplicaState::kGone;
  if (replica.state != ReplicaState::kReady) return;
  replica.state = ReplicaState::kDraining;
  TellClients();
  At(now_ + options_.lame_duck, [this, number](Nanos) {
    if (replicas_[number]->state != ReplicaState::kDraining) return;
    replicas_[number]->StartDraining();
    Ask(number);
  });
  // Nothing that was accepted lives longer than the deadline.
  At(now_ + options_.lame_duck + 2 * options_.deadline, [this, number](Nanos) {
    if (replicas_[number]->state == ReplicaState::kDraining) replicas_[number]->state = ReplicaState::kGone;
  });
}

void Fleet::Crash(int number) {
  if (replicas_[number]->state == ReplicaState::kGone) return;
  replicas_[number]->state = ReplicaState::kGone;
  destroyed_ = number;
  noticed_ = true;
  replicas_[number]->Destroy();
  noticed_ = false;
  TellClients();
}

void Fleet::Vanish(int number) {
  if (replicas_[number]->state == ReplicaState::kGone) return;
  replicas_[number]->state = ReplicaState::kSilent;
  replicas_[number]->Destroy();
  if (options_.keepalive != kNever) {
    At(now_ + options_.keepalive, [this, number](Nanos) {
      for (Client& client : clients_) client.balancer.Avoid(number, kNever);
    });
  }
  At(now_ + options_.unnoticed, [this, number](Nanos) {
    replicas_[number]->state = ReplicaState::kGone;
    TellClients();
  });
}

std::vector<int> Fleet::Ready() const {
  std::vector<int> ready;
  for (int i = 0; i < replicas(); ++i) {
    // A silent one is in the list until somebody notices.
    const ReplicaState state = replicas_[i]->state;
    if (state == ReplicaState::kReady || state == ReplicaState::kSilent) ready.push_back(i);
  }
  return ready;
}

int Fleet::Wanted() const {
  return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [](const auto& replica) {
    return replica->state == ReplicaState::kReady || replica->state == ReplicaState::kStarting;
  }));
}

void VersionTally::CountTime(Nanos time) {
  const double steps =
      std::log(static_cast<double>(time.count()) / static_cast<double>(kFirst.count())) / std::log(kGrowth);
  const double last = static_cast<double>(took.size() - 1);
  ++took[static_cast<size_t>(std::clamp(std::ceil(steps), 0.0, last))];
}

Nanos SlowestHundredth(const VersionTally& before, const VersionTally& after) {
  int64_t left = 0;
  for (size_t i = 0; i < after.took.size(); ++i) left += after.took[i] - before.took[i];
  if (left == 0) return Nanos();
  const int64_t above = left / 100;
  double bound = static_cast<double>(VersionTally::kFirst.count());
  for (size_t i = 0; i < after.took.size(); ++i, bound *= VersionTally::kGrowth) {
    left -= after.took[i] - before.took[i];
    if (left <= above) break;
  }
  return Nanos(static_cast<int64_t>(bound));
}

VersionTally Fleet::TallyOf(int version) const {
  const auto found = versions_.find(version);
  return found == versions_.end() ? VersionTally() : found->second;
}

void Fleet::TellClients() {
  for (int i = 0; i < static_cast<int>(clients_.size()); ++i) {
    if (std::exchange(clients_[i].told, true)) continue;
    const Nanos delay = FromSeconds(random_.Uniform() * options_.discovery.count() * 1e-9);
    Schedule({.at = now_ + delay, .where = i, .kind = Kind::kView});
  }
}

void Fleet::Tick() {
  Second second;
  second.ready = static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [](const auto& replica) {
    return replica->state == ReplicaState::kReady;
  }));
  second.bound = second.ready * OverloadGoodput(options_.latency, 1, kAnyRate, options_.deadline,
                                                options_.batcher.max_batch_size);
  seconds_.push_back(second);
  if (options_.balancing == Balancing::kWeighted) {
    for (auto& replica : replicas_) replica->SampleLoad(now_);
  }
  Schedule({.at = now_ + kSecond, .kind = Kind::kTick});
}

}  // namespace saccade::server::simulation
