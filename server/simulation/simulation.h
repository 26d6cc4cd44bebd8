// The event loop: requests arrive, a policy batches them, devices compute, all on virtual time. The same
// options and seed give the same run, to the nanosecond.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "server/admission/admission.h"
#include "server/core/cancellation.h"
#include "server/simulation/device.h"
#include "server/simulation/ledger.h"
#include "server/simulation/observer.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_task.h"
#include "server/simulation/workload.h"

namespace saccade::server::simulation {

class Simulation final : private SimTask::Watcher {
 public:
  struct Options {
    std::vector<StreamOptions> streams;
    // No arrivals from here on; what is there is worked off.
    Instant until = 10 * kSecond;
    uint64_t seed = 1;
    Ledger::Options ledger = {};
    // Work goes on at most so long after `until`.
    Instant patience = 600 * kSecond;
  };

  // What goes wrong in a policy rather than in a run; all are zero if nothing does.
  struct Mistakes {
    // Never ended, ended twice, and still there when nothing more could happen.
    int64_t lost = 0;
    int64_t ended_twice = 0;
    int64_t stuck = 0;
    // wake_at was not after now although Next had nothing.
    int64_t woke_in_vain = 0;

    int64_t total() const { return lost + ended_twice + stuck + woke_in_vain; }
  };

  // The policy has to have been made for the device's models. The others have to outlive the simulation;
  // `admission` and `observer` may be null.
  Simulation(const Options& options, Device* device, std::unique_ptr<Policy> policy,
             Admission* admission = nullptr, Observer* observer = nullptr);
  ~Simulation() override;

  // Calls `what` at that time, unless it is past the end; also from within such a call.
  void At(Instant when, std::function<void(Instant)> what);

  // Once.
  void Run();

  const Ledger& ledger() const { return ledger_; }
  const Mistakes& mistakes() const { return mistakes_; }
  // Of everything that happened, in order.
  uint64_t trace_hash() const { return trace_hash_; }
  int64_t requests() const { return requests_; }
  int64_t batches() const { return batches_; }
  int64_t computed() const { return computed_; }
  // How often Next was asked.
  int64_t asked() const { return asked_; }
  // How long a model's instances computed within the ledger's span, all together.
  Instant busy(int model) const { return busy_[model]; }

 private:
  enum class Kind : uint32_t { kArrival, kFinish, kCancel, kAction };
  struct Event {
    Instant at;
    // Breaks ties in the order of scheduling.
    uint64_t number;
    Kind kind;
    uint32_t index;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  struct Running {
    int model = 0;
    int instance = 0;
    Instant began = 0;
    bool ok = true;
    std::vector<std::unique_ptr<BatchTask>> tasks;
  };

  void Schedule(Instant at, Kind kind, uint32_t index);
  void Handle(const Event& event);
  void Arrive(uint32_t stream);
  void Submit(const StreamOptions& stream, const Arrival& arrival, uint32_t index);
  void Start(Policy::Batch batch);
  void Finish(uint32_t pass);
  void AskForBatches();
  void End(SimTask& task, Outcome outcome);
  void Trace(uint64_t what);
  // When the policy wants to be asked again.
  Instant WakeAt();

  void OnRejected(SimTask& task, const absl::Status& why) override;
  void OnLost(const SimTask& task) override;

  const Options options_;
  Device* const device_;
  std::unique_ptr<Policy> policy_;
  Admission* const admission_;
  Observer* const observer_;

  // A heap.
  std::vector<Event> events_;
  uint64_t scheduled_ = 0;
  Instant now_ = 0;

  std::vector<Stream> streams_;
  std::vector<Arrival> next_arrivals_;
  std::vector<Running> running_;
  std::vector<uint32_t> free_running_;
  std::vector<std::shared_ptr<Cancellation>> cancellations_;
  std::vector<uint32_t> free_cancellations_;
  // A deque, as one of them may add another.
  std::deque<std::function<void(Instant)>> actions_;

  Ledger ledger_;
  Mistakes mistakes_;
  uint64_t trace_hash_ = 0;
  int64_t requests_ = 0;
  int64_t batches_ = 0;
  int64_t computed_ = 0;
  int64_t asked_ = 0;
  int64_t alive_ = 0;
  std::vector<Instant> busy_;
};

}  // namespace saccade::server::simulation
