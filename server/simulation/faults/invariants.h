// Invariants that must always hold, checked at every step of a simulation of the daemon's scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "server/simulation/faults/group_policy.h"
#include "server/simulation/faults/scenario.h"
#include "server/simulation/observer.h"
#include "server/simulation/simulation.h"

namespace saccade::server::simulation {

class Invariants final : public Observer {
 public:
  // Both arguments must outlive the object.
  Invariants(const Scenario& scenario, const GroupPolicy* policy);

  // Called when the model stops accepting requests, and when it is loaded again.
  void Closed(int model) { models_[model].closed = true; }
  void Reopened(int model) {
    models_[model].closed = false;
    for (Bucket& bucket : models_[model].buckets) bucket.known = false;
  }
  // True if no instance of the model computes.
  bool Idle(int model) const { return models_[model].computing == 0; }

  // When a pass of the model last began.
  Nanos last_pass(int model) const { return models_[model].last_pass; }

  // Adds a violation that was found elsewhere.
  void Add(Nanos now, const std::string& violation) { Violated(now, violation); }

  // Number of requests that the policy was asked about before they were prepared.
  int64_t considered() const { return considered_; }

  // Checks the end of a run. `requests` is the number of requests that arrived.
  void CheckEnd(int64_t requests, const Simulation::Mistakes& mistakes, const Inflight& inflight);

  // Descriptions of the first few violations.
  const std::vector<std::string>& violations() const { return violations_; }

  void OnTaken(const SimTask& task, Nanos now) override;
  void OnConsidered(const SimTask& task, absl::Span<const int64_t> buckets, const absl::Status& said,
                    Nanos now) override;
  void OnSwept(Nanos now) override;
  void OnRefused(const SimTask& task, const absl::Status& why, Nanos now) override;
  void OnStart(const Policy::Batch& batch, Nanos now) override;
  void OnFinish(int model, int instance, Nanos now) override;
  void OnFailed(int model, int instance, Nanos now) override;
  void OnRetry(const SimTask& task, int failed_on, Nanos now) override;
  void OnEnd(const SimTask& task, Outcome outcome, Nanos now) override;
  void OnSettled(Nanos now, Nanos wake) override;

 private:
  // The sort key of a request in its bucket.
  struct Position {
    int64_t priority_class = 0;
    Nanos deadline = {};
    Nanos arrival = {};
    int64_t id = 0;
    const SimTask* task = nullptr;

    bool operator<(const Position& other) const {
      return std::tie(priority_class, deadline, arrival, id) <
             std::tie(other.priority_class, other.deadline, other.arrival, other.id);
    }
  };
  struct Bucket {
    absl::btree_set<Position> waiting;
    int64_t pictures = 0;
    // When a pass of this bucket last succeeded.
    Nanos last_pass = {};
    // True if a pass of this bucket has succeeded since the model was loaded.
    bool known = false;
  };
  struct Model {
    std::vector<Bucket> buckets;
    int64_t pictures = 0;
    // Those of retries.
    int64_t retried = 0;
    // Waiting pictures by priority class.
    absl::btree_map<int64_t, int64_t> classes;
    // By instance: when its pass began, kNever if idle.
    std::vector<Nanos> began;
    // By instance: until when it may be idle beside a queue, because its last pass failed.
    std::vector<Nanos> excused_until;
    int computing = 0;
    Nanos last_pass = {};
    bool closed = false;
  };
  // A request that went first when another one's batch began. It may have begun at the same time.
  struct PassedOver {
    int model = 0;
    int64_t bucket = 0;
    Position position;
    int64_t by = 0;
  };
  struct Retried {
    int failed_on = 0;
    bool waits = true;
  };

  template <typename... Parts>
  void Violated(Nanos now, const Parts&... parts);

  const QueuePolicy& PolicyOf(const SimTask& task) const;
  int64_t ClassOf(const SimTask& task) const;
  Position PositionOf(const SimTask& task) const;
  bool TimedOut(const SimTask& task, Nanos now) const;
  bool Alive(const SimTask& task, Nanos now) const;
  void Forget(const SimTask& task);

  // Checks a rejection of `size` items before the request waits in one of `buckets`.
  void CheckRefusal(const SimTask& task, int64_t size, absl::Span<const int64_t> buckets,
                    const absl::Status& why, Nanos now);
  bool IsFull(const SimTask& task, int64_t size) const;
  void CheckTiny(const Policy::Batch& batch, Nanos now);
  void CheckInstance(const Policy::Batch& batch, Nanos now);
  // Returns true if the batch is a retry.
  bool CheckRetry(const Policy::Batch& batch, Nanos now);
  void CheckMembers(const Policy::Batch& batch, Nanos now);
  void CheckOrder(const Policy::Batch& batch, Nanos now);
  void CheckCores(const Policy::Batch& batch, Nanos now);
  bool CouldBegin(int index, Nanos now) const;
  void CheckWaiting(int model, Nanos now, Nanos wake);

  const Scenario& scenario_;
  const GroupPolicy* const policy_;
  const bool always_fits_;
  std::vector<Model> models_;
  // Running passes by device.
  std::map<int, int> computing_;
  // The requests that are computed a second time, by id.
  absl::btree_map<int64_t, Retried> retried_;
  // Since the policy last settled.
  std::vector<PassedOver> passed_over_;
  // Requests that were cancelled at the last sweep, and waited.
  absl::btree_set<int64_t> cancelled_;
  int64_t considered_ = 0;
  // The number of requests of one item and one bucket that Consider() accepted and that were pushed at the
  // same time, how many of them were rejected, and the last one's id.
  int64_t foretold_ = 0;
  int64_t foretold_wrongly_ = 0;
  int64_t foretold_id_ = -1;
  int64_t ended_ = 0;
  Nanos last_finish_ = {};
  // Outcomes of the second half of the requests that arrive after the faults have ended.
  Tally healed_;
  std::string last_refusal_;
  std::vector<std::string> violations_;
};

}  // namespace saccade::server::simulation
