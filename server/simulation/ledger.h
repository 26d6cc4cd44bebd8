// What became of every request.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "server/simulation/histogram.h"
#include "server/simulation/instant.h"

namespace saccade::server::simulation {

enum class Outcome {
  kInTime,
  kLate,
  // Not taken.
  kRefused,
  // Taken, and rejected before it was computed.
  kShed,
  kCancelled,
  // The pass failed.
  kFailed,
};
inline constexpr int kOutcomes = 6;

class Tally {
 public:
  void Add(Outcome outcome) { ++counts_[static_cast<size_t>(outcome)]; }
  void Add(const Tally& other);

  int64_t operator[](Outcome outcome) const { return counts_[static_cast<size_t>(outcome)]; }
  int64_t total() const;
  // Of all that stayed, how many had this outcome: whoever cancelled is not counted.
  double Share(Outcome outcome) const;

 private:
  std::array<int64_t, kOutcomes> counts_{};
};

class Ledger {
 public:
  struct Options {
    // Requests that arrived outside are not counted.
    Instant from = 0;
    Instant to = kNever;
    // Tallies by time of arrival, in slots of so long; 0 for none.
    Instant slot = 0;
  };

  struct Entry {
    int stream = 0;
    int bucket = 0;
    int client = 0;
    Instant arrival = 0;
    Instant deadline = kNever;
  };

  explicit Ledger(const Options& options) : options_(options) {}

  void Count(const Entry& entry, Outcome outcome, Instant now);

  const Tally& all() const { return all_; }
  // Those of streams, buckets, clients and slots that nothing was counted for may be missing.
  const std::vector<Tally>& by_stream() const { return by_stream_; }
  const std::vector<Tally>& by_bucket() const { return by_bucket_; }
  const std::vector<Tally>& by_client() const { return by_client_; }
  const std::vector<Tally>& by_slot() const { return by_slot_; }

  // From arrival to answer, of what was computed.
  const Histogram& latency() const { return latency_; }

  // In time in all, a second of the counted span. REQUIRES: it is finite.
  double goodput() const;

  // Jain's index of the clients' requests in time: 1 if all have as many.
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
