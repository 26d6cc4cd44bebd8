#include "server/simulation/fleet/balancer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace saccade::server::simulation {
namespace {

// A replica's rank for a client: a hash, so that a new replica takes a few clients from each of the others.
uint64_t RankOf(int client, int replica) {
  uint64_t hash = (static_cast<uint64_t>(client) << 32 | static_cast<uint32_t>(replica)) + 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

// gRPC's static stride scheduler: the largest weight, and the bounds of all relative to their mean.
constexpr uint64_t kMaxStride = 65535;
constexpr double kMinRatio = 0.01;
constexpr double kMaxRatio = 10;

}  // namespace

void Balancer::SetReplicas(const std::vector<int>& replicas) {
  replicas_ = replicas;
  if (kind_ == Balancing::kSubset && static_cast<int>(replicas_.size()) > subset_) {
    const auto by_rank = [this](int a, int b) { return RankOf(client_, a) < RankOf(client_, b); };
    std::nth_element(replicas_.begin(), replicas_.begin() + subset_, replicas_.end(), by_rank);
    replicas_.resize(subset_);
  }
  for (size_t i = replicas_.size(); !same_order_ && i > 1; --i) {
    std::swap(replicas_[i - 1], replicas_[static_cast<size_t>(random_.Below(static_cast<int64_t>(i)))]);
  }
  weigh_at_ = Nanos();
  // Clients that learn of a change together must not go on in step.
  if (!replicas_.empty()) next_ = static_cast<size_t>(random_.Below(static_cast<int64_t>(replicas_.size())));
}

Balancer::Known& Balancer::At(int replica) {
  if (static_cast<size_t>(replica) >= known_.size()) known_.resize(replica + 1);
  return known_[replica];
}

std::optional<int> Balancer::NextInTurn(Nanos now) {
  for (size_t tried = 0; tried < replicas_.size(); ++tried) {
    const int replica = replicas_[next_++ % replicas_.size()];
    if (At(replica).refused_until <= now) return replica;
  }
  return std::nullopt;
}

std::optional<int> Balancer::BetterOfTwo(Nanos now) {
  std::optional<int> best;
  for (int choice = 0; choice < 2; ++choice) {
    next_ = static_cast<size_t>(random_.Below(static_cast<int64_t>(replicas_.size())));
    const std::optional<int> other = NextInTurn(now);
    if (!other) return std::nullopt;
    const auto load = [this](int replica) { return At(replica).load + At(replica).open; };
    if (!best || load(*other) < load(*best)) best = other;
  }
  return best;
}

void Balancer::Weigh(Nanos now) {
  weigh_at_ = now + kWeighEvery;
  strides_.clear();
  const auto weight = [&](int replica) {
    const Known& known = At(replica);
    return known.reported_since != kNever && known.reported_since + kBlackout <= now ? known.weight : 0;
  };
  double sum = 0;
  int weighted = 0;
  for (const int replica : replicas_) {
    sum += weight(replica);
    weighted += weight(replica) > 0;
  }
  if (weighted < 2) return;
  // A replica without a weight gets the mean.
  const double mean = sum / weighted;
  const auto bounded = [&](int replica) {
    const double own = weight(replica);
    return own > 0 ? std::clamp(own, kMinRatio * mean, kMaxRatio * mean) : mean;
  };
  double largest = 0;
  for (const int replica : replicas_) largest = std::max(largest, bounded(replica));
  for (const int replica : replicas_)
    strides_.push_back(
        static_cast<uint64_t>(std::lround(bounded(replica) / largest * static_cast<double>(kMaxStride))));
}

// A replica is picked in a part of the rounds: its weight, divided by the largest.
std::optional<int> Balancer::NextByWeight(Nanos now) {
  if (now >= weigh_at_) Weigh(now);
  // A replica with the largest weight is picked in every round. If all of these refuse, any other is taken.
  for (size_t tried = 0; tried < 2 * strides_.size(); ++tried) {
    const size_t index = next_ % strides_.size();
    const uint64_t round = next_++ / strides_.size();
    const uint64_t stride = strides_[index];
    if ((stride * round + kMaxStride / 2 * index) % kMaxStride < kMaxStride - stride) continue;
    if (At(replicas_[index]).refused_until <= now) return replicas_[index];
  }
  return NextInTurn(now);
}

void Balancer::Report(int replica, double weight, Nanos now) {
  if (weight <= 0) return;
  Known& known = At(replica);
  known.weight = weight;
  if (known.reported_since == kNever) known.reported_since = now;
}

std::optional<int> Balancer::Pick(Nanos now) {
  if (replicas_.empty()) return std::nullopt;
  std::optional<int> picked;
  if (kind_ == Balancing::kLeastLoaded) {
    picked = BetterOfTwo(now);
  } else {
    picked = kind_ == Balancing::kWeighted ? NextByWeight(now) : NextInTurn(now);
  }
  if (picked) ++At(*picked).open;
  return picked;
}

void Balancer::Closed(int replica, std::optional<double> load) {
  Known& known = At(replica);
  --known.open;
  if (load) known.load = *load;
}

}  // namespace saccade::server::simulation
