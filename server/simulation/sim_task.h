// A simulated request. Notifies its watcher if it is rejected or lost.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "server/admission/admission.h"
#include "server/batching/batch_task.h"
#include "server/simulation/ledger.h"

namespace saccade::server::simulation {

class SimTask final : public BatchTask {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void OnRejected(SimTask& task, const absl::Status& why) = 0;
    // The task was destroyed before End() was called.
    virtual void OnLost(const SimTask& task) = 0;
  };

  SimTask(Traits traits, int64_t id, int model, const Ledger::Entry& entry, Watcher* watcher)
      : BatchTask(std::move(traits)), id_(id), model_(model), entry_(entry), watcher_(watcher) {}
  ~SimTask() override {
    if (!ended_) watcher_->OnLost(*this);
  }

  void Reject(absl::Status why) override { watcher_->OnRejected(*this, why); }

  // Marks the task as ended. Returns false if it had ended before.
  bool End() { return !std::exchange(ended_, true); }

  // Numbered in the order of arrival.
  int64_t id() const { return id_; }
  int model() const { return model_; }
  const Ledger::Entry& entry() const { return entry_; }

  // Held until the task is destroyed.
  Admission::Ticket ticket;

 private:
  const int64_t id_;
  const int model_;
  const Ledger::Entry entry_;
  Watcher* const watcher_;
  bool ended_ = false;
};

inline SimTask& AsSimTask(const std::unique_ptr<BatchTask>& task) { return static_cast<SimTask&>(*task); }

}  // namespace saccade::server::simulation
