// Workloads: the requests that arrive, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/simulation/random.h"
#include "server/simulation/virtual_time.h"

namespace saccade::server::simulation {

struct Arrival {
  Nanos at = {};
  int bucket = 0;
  int client = 0;
  int64_t size = 1;
  // kNever if the request is not cancelled.
  Nanos cancel_at = kNever;
};

struct StreamOptions {
  int model = 0;

  // Requests arrive in [from, to).
  Nanos from = {};
  Nanos to = kNever;

  // Requests per second.
  double rate = 100;
  // Coefficient of variation of the gaps: 0 is even, 1 is Poisson, above 1 is bursty (gamma).
  double cv = 1;

  // The rate is multiplied by day_factor^sin(2 pi t / day_length).
  double day_factor = 1;
  Nanos day_length = 60 * kSecond;

  // The rate is multiplied by step_factor in [step_from, step_to).
  double step_factor = 1;
  Nanos step_from = {};
  Nanos step_to = {};

  // Drawn for each request: a bucket by weight, one of `clients` equally likely clients, and a size by weight
  // (the first weight is that of size 1).
  std::vector<double> buckets = {1};
  int first_client = 0;
  int clients = 1;
  std::vector<double> sizes = {1};

  // If true, a request arrives when the one before has ended, after a gap drawn as for the others: one client
  // that waits for each answer, and then for 1 / rate seconds on average.
  bool one_at_a_time = false;

  // If not null, these requests arrive instead of drawn ones; ascending by time.
  std::shared_ptr<const std::vector<Arrival>> recorded = nullptr;

  int priority = 0;
  // Counted from the arrival. kNever for no deadline.
  Nanos deadline = 100 * kMillisecond;
  Nanos timeout = kNever;
  // True if the policy is asked (Policy::Consider) before a request is prepared, which takes so long. If the
  // item could be turned, it is asked about the next bucket as well.
  bool considered = false;
  bool may_turn = false;
  Nanos preparation = {};
  // The share of requests that are cancelled, at a time drawn uniformly from arrival to twice the deadline.
  double cancelled = 0;
};

// A renewal process. Two streams that differ only in their rate have the same gaps, scaled, and the same
// requests.
class Stream {
 public:
  Stream(const StreamOptions& options, uint64_t seed);

  // The next arrival. Times never decrease, and go on beyond `to`; kNever after the last recorded one.
  Arrival Next();

  // Lets the next gap begin at `now`, if that is later than the last arrival.
  void WaitUntil(Nanos now);

  const StreamOptions& options() const { return options_; }

 private:
  double RateAt(double seconds) const;

  const StreamOptions options_;
  const Choice bucket_;
  const Choice size_;
  // A separate generator, because a gamma variable consumes a varying number of random numbers.
  Random gaps_;
  Random requests_;
  double seconds_ = 0;
  // Index of the next recorded arrival.
  size_t next_ = 0;
};

// The seed of a stream. Each stream has its own generators, so that one does not shift another's numbers.
uint64_t StreamSeed(uint64_t seed, size_t stream);

}  // namespace saccade::server::simulation
