// The event loop: requests arrive, a policy batches them, devices compute, all on virtual time. Equal options
// and seeds give identical runs, to the nanosecond.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "server/admission/admission.h"
#include "server/core/cancellation.h"
#include "server/simulation/ledger.h"
#include "server/simulation/model_loader.h"
#include "server/simulation/observer.h"
#include "server/simulation/policy.h"
#include "server/simulation/sim_devices.h"
#include "server/simulation/sim_task.h"
#include "server/simulation/virtual_clock.h"
#include "server/simulation/workload.h"

namespace saccade::server::simulation {

class Simulation final : private SimTask::Watcher {
 public:
  struct Options {
    std::vector<StreamOptions> streams;
    // No requests arrive from this time on. The run continues until the accepted ones have ended.
    Nanos until = 10 * kSecond;
    uint64_t seed = 1;
    Ledger::Options ledger = {};
    // If not null, kept at the simulation's time.
    VirtualClock* clock = nullptr;
    // The run ends at the latest this long after `until`.
    Nanos patience = 600 * kSecond;
    // How often Policy::Sweep() is called; kNever for never.
    Nanos sweep_every = kNever;
    // If not null, requests wait there until their model is loaded.
    ModelLoader* loads = nullptr;
  };

  // Errors of the policy itself. All are zero for a correct policy.
  struct Mistakes {
    // Requests that were destroyed before they ended, that ended twice, and that had not ended after the run.
    int64_t lost = 0;
    int64_t ended_twice = 0;
    int64_t stuck = 0;
    // How often wake_at() was not in the future although Next() had returned no batch.
    int64_t woke_in_vain = 0;

    int64_t total() const { return lost + ended_twice + stuck + woke_in_vain; }
  };

  // `policy` must have been created for the device's models. `device`, `admission` and `observer` must
  // outlive the simulation; `admission` and `observer` may be null.
  Simulation(const Options& options, SimDevices* device, std::unique_ptr<Policy> policy,
             Admission* admission = nullptr, Observer* observer = nullptr);
  ~Simulation() override;

  // Calls `what` at time `when`, unless the run ends before. May be called from within an action.
  void At(Nanos when, std::function<void(Nanos)> what);

  // Runs the simulation to its end. May be called once.
  void Run();

  const Ledger& ledger() const { return ledger_; }
  const Mistakes& mistakes() const { return mistakes_; }
  // A hash of all events in order.
  uint64_t trace_hash() const { return trace_hash_; }
  int64_t requests() const { return requests_; }
  int64_t batches() const { return batches_; }
  int64_t computed() const { return computed_; }
  // How often Policy::Next() was called.
  int64_t asked() const { return asked_; }
  // The total time that the model's instances computed within the ledger's span.
  Nanos busy(int model) const { return busy_[model]; }

 private:
  enum class Kind : uint32_t { kArrival, kFinish, kCancel, kAction, kPrepared, kSweep };
  struct Event {
    Nanos at;
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
    Nanos began = {};
    bool ok = true;
    std::vector<std::unique_ptr<BatchTask>> tasks;
  };

  void SetTime(Nanos now);
  void Schedule(Nanos at, Kind kind, uint32_t index);
  void Handle(const Event& event);
  void ScheduleNext(uint32_t stream);
  void Arrive(uint32_t stream);
  void Submit(const StreamOptions& stream, const Arrival& arrival, uint32_t index);
  // Continues with a request whose model is loaded.
  void Begin(std::unique_ptr<SimTask> task);
  // Asks the policy about a request that is not prepared yet.
  absl::Status Consider(const StreamOptions& stream, const SimTask& task);
  // Offers a prepared request to the policy.
  void Push(std::unique_ptr<SimTask> task);
  // Tells the observer that the policy took the request.
  void NoteTaken(const SimTask& task);
  void Refuse(SimTask& task, const absl::Status& why);
  void Sweep();
  void Start(Policy::Batch batch);
  void Finish(uint32_t pass);
  // Ends a pass that has failed.
  void Fail(Running done);
  void AskForBatches();
  void End(SimTask& task, Outcome outcome);
  void Trace(uint64_t what);
  // The policy's wake_at(), moved into the future if necessary.
  Nanos WakeAt();

  void OnRejected(SimTask& task, const absl::Status& why) override;
  void OnLost(const SimTask& task) override;

  const Options options_;
  SimDevices* const device_;
  std::unique_ptr<Policy> policy_;
  Admission* const admission_;
  Observer* const observer_;

  // A heap ordered by Later.
  std::vector<Event> events_;
  uint64_t scheduled_ = 0;
  Nanos now_ = {};

  std::vector<Stream> streams_;
  std::vector<Arrival> next_arrivals_;
  std::vector<Running> running_;
  std::vector<uint32_t> free_running_;
  // The request of the call of Policy::Push() in progress until the observer is told; the policy may reject
  // it after it took it.
  const SimTask* pushed_ = nullptr;
  // Likewise those of the call of Policy::Failed() in progress, and the instance that failed.
  std::vector<const SimTask*> failed_;
  int failed_on_ = 0;
  std::vector<std::unique_ptr<SimTask>> preparing_;
  std::vector<uint32_t> free_preparing_;
  std::vector<std::shared_ptr<Cancellation>> cancellations_;
  std::vector<uint32_t> free_cancellations_;
  // A deque, because an action may add another while it runs.
  std::deque<std::function<void(Nanos)>> actions_;

  Ledger ledger_;
  Mistakes mistakes_;
  uint64_t trace_hash_ = 0;
  int64_t requests_ = 0;
  int64_t batches_ = 0;
  int64_t computed_ = 0;
  int64_t asked_ = 0;
  int64_t alive_ = 0;
  std::vector<Nanos> busy_;
};

}  // namespace saccade::server::simulation
