// Counts how every request of a simulation ended.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "server/simulation/histogram.h"
#include "server/simulation/virtual_time.h"

namespace saccade::server::simulation {

enum class Outcome {
  kInTime,
  kLate,
  // Refused by Policy::Push() or by admission.
  kRefused,
  // Accepted, then rejected before it was computed.
  kShed,
  kCancelled,
  // Its pass failed.
  kFailed,
};
inline constexpr int kOutcomes = 6;

class Tally {
 public:
  void Add(Outcome outcome) { ++counts_[static_cast<size_t>(outcome)]; }
  void Add(const Tally& other);

  int64_t operator[](Outcome outcome) const { return counts_[static_cast<size_t>(outcome)]; }
  int64_t total() const;
  // The share of the requests that were not cancelled which had this outcome.
  double Share(Outcome outcome) const;

 private:
  std::array<int64_t, kOutcomes> counts_{};
};

class Ledger {
 public:
  struct Options {
    // Only requests that arrive in [from, to) are counted.
    Nanos from = {};
    Nanos to = kNever;
    // Length of the slots of by_slot(); 0 for no slots.
    Nanos slot = {};
  };

  struct Entry {
    int stream = 0;
    int bucket = 0;
    int client = 0;
    Nanos arrival = {};
    Nanos deadline = kNever;
  };

  explicit Ledger(const Options& options) : options_(options) {}

  void Count(const Entry& entry, Outcome outcome, Nanos now);

  const Tally& all() const { return all_; }
  // Tallies by index. Each vector ends at the highest index counted so far.
  const std::vector<Tally>& by_stream() const { return by_stream_; }
  const std::vector<Tally>& by_bucket() const { return by_bucket_; }
  const std::vector<Tally>& by_client() const { return by_client_; }
  const std::vector<Tally>& by_slot() const { return by_slot_; }

  // Time from arrival to answer of the computed requests.
  const Histogram& latency() const { return latency_; }

  // Requests answered in time, per second of [from, to). REQUIRES: `to` is finite.
  double goodput() const;

  // Jain's fairness index of the clients' requests in time: 1 if all clients have equally many.
  double fairness() const;

 private:
  const Options options_;
  Tally all_;
  std::vector<Tally> by_stream_;
  std::vector<Tally> by_bucket_;
  std::vector<Tally> by_client_;
  std::vector<Tally> by_slot_;
  Histogram latency_;
};

}  // namespace saccade::server::simulation
