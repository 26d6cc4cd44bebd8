// Figures of a model that metrics report. The scheduler writes them under its group's lock; any thread reads
// them without it, so that a scrape of many models delays no request.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/batching/nanos.h"

namespace saccade::server {

// A sum of times of which each part is taken once. Thread-safe.
class Demand {
 public:
  void Add(Nanos time) {
    nanoseconds_.fetch_add(static_cast<int64_t>(time.count()), std::memory_order_relaxed);
  }
  // Returns what was added since the last call.
  absl::Duration Take() { return absl::Nanoseconds(nanoseconds_.exchange(0, std::memory_order_relaxed)); }

 private:
  std::atomic<int64_t> nanoseconds_{0};
};

struct ModelGauges {
  // See Scheduler::TakeDemand.
  Demand demand;
  // See Scheduler::queued and Scheduler::set_aside.
  std::atomic<int64_t> queued{0};
  std::atomic<int64_t> set_aside{0};
};

}  // namespace saccade::server
