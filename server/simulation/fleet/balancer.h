// How one client chooses among the replicas that it knows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/simulation/fleet/options.h"
#include "server/simulation/random.h"
#include "server/simulation/virtual_time.h"

namespace saccade::server::simulation {

// Not thread-safe.
class Balancer {
 public:
  // How long a replica that refused a connection is left out: gRPC's first backoff.
  static constexpr Nanos kBackoff = kSecond;
  // How long after its first report a replica's weight is not used, and how often weights change: gRPC's
  // defaults.
  static constexpr Nanos kBlackout = 10 * kSecond;
  static constexpr Nanos kWeighEvery = kSecond;

  // `client` is its number; clients with the same numbers have the same subsets. `same_order` keeps the order
  // of the list, which is shuffled otherwise.
  Balancer(Balancing kind, int subset, int client, uint64_t seed, bool same_order = false)
      : kind_(kind), subset_(subset), client_(client), same_order_(same_order), random_(seed) {}

  // Replaces the list of replicas.
  void SetReplicas(const std::vector<int>& replicas);

  // The replica for a request, which counts as open there until Closed(). nullopt if all refuse connections,
  // or there are none.
  std::optional<int> Pick(Nanos now);

  // A request there has ended. `load` is the number of requests that the replica then had, if it said so.
  void Closed(int replica, std::optional<double> load);
  // The weight that a load report gives the replica (Replica::weight); 0, which changes nothing, if it gives
  // none.
  void Report(int replica, double weight, Nanos now);
  // The replica refused or reset the connection.
  void Refused(int replica, Nanos now) { Avoid(replica, now + kBackoff); }
  // Leaves a replica out until then.
  void Avoid(int replica, Nanos until) { At(replica).refused_until = until; }

  const std::vector<int>& replicas() const { return replicas_; }

 private:
  struct Known {
    double load = 0;
    int open = 0;
    Nanos refused_until = {};
    double weight = 0;
    // When the first report with a weight came.
    Nanos reported_since = kNever;
  };

  Known& At(int replica);
  std::optional<int> NextInTurn(Nanos now);
  std::optional<int> BetterOfTwo(Nanos now);
  std::optional<int> NextByWeight(Nanos now);
  void Weigh(Nanos now);

  const Balancing kind_;
  const int subset_;
  const int client_;
  const bool same_order_;
  Random random_;
  std::vector<int> replicas_;
  // By the replica's number.
  std::vector<Known> known_;
  size_t next_ = 0;
  // By the index in replicas_; the largest is kMaxStride. Empty if fewer than two replicas have a weight.
  std::vector<uint64_t> strides_;
  Nanos weigh_at_ = {};
};

}  // namespace saccade::server::simulation
