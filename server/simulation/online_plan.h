// When an idle instance should start a batch, by a dynamic program that knows the distribution of the
// arrivals and not the arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/simulation/linear_latency.h"
#include "server/simulation/slotted_arrivals.h"

namespace saccade::server::simulation {

// Maximises the discounted number of items in time, of one instance and one bucket whose items all have the
// same deadline. Time goes in slots. A state is the number of queued items, the age of the first one and the
// state of the arrivals. The ages of the items behind the first are taken as spread evenly, but for those
// that are queued when Choose() decides.
class OnlinePlan {
 public:
  struct Options {
    LinearLatency latency;
    Nanos deadline = 100 * kMillisecond;
    int64_t max_batch_size = 256;
    // Slots per deadline.
    int slots = 40;
    // The mean age of an item, in slots, at the end of the slot in which it arrived.
    double newest_age = 0.5;
    // Time, in deadlines, over which rewards are discounted to 1 / e.
    double horizon = 10;
    int sweeps = 50;
  };

  OnlinePlan(const Options& options, SlottedArrivals arrivals);

  // Drop `late` items, then compute the next `batch` ones; 0 to decide again after the next arrival, or a
  // slot later.
  struct Choice {
    int64_t late = 0;
    int64_t batch = 0;
  };

  // What an idle instance should do. Both arguments are in slots: the ages of the queued items, descending,
  // and the time since the last arrival.
  Choice Choose(absl::Span<const double> ages, double silence) const;

  Nanos slot() const { return slot_; }

 private:
  using Values = std::vector<float>;

  size_t Index(size_t state, int64_t age, int64_t queued) const {
    return static_cast<size_t>(
        (static_cast<int64_t>(state) * (options_.slots + 1) + age) * (max_queued_ + 1) + queued);
  }
  // The time of a pass in slots.
  double Pass(int64_t batch) const;
  double At(int64_t after, int64_t queued, double age, size_t state) const;
  // The value of starting a batch whose members are all in time, with `left` items still queued, of which the
  // first is `age` slots old.
  double Start(int64_t batch, int64_t left, double age, size_t state) const;
  double StartBest(int64_t queued, double age, size_t state) const;
  // Stores what the states are worth a slot before they are worth `after`, if nothing is decided.
  void Evolve(const Values& after, Values* before) const;
  void Sweep();

  const Options options_;
  const SlottedArrivals arrivals_;
  const Nanos slot_;
  const double discount_;
  // More items are never served in time. Those beyond are not counted.
  int64_t max_queued_ = 0;
  int64_t max_batch_ = 0;
  // By the number of slots until the instance is idle.
  std::vector<Values> values_;
};

}  // namespace saccade::server::simulation
