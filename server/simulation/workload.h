// Who asks for what, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/simulation/instant.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

struct StreamOptions {
  int model = 0;

  // It arrives from here on, and until then.
  Instant from = 0;
  Instant to = kNever;

  // Requests a second.
  double rate = 100;
  // Coefficient of variation of the gaps: 0 is even, 1 is Poisson, above are bursts (gamma).
  double cv = 1;

  // The rate goes up to so many times itself and down to the inverse, in a sine.
  double day_factor = 1;
  Instant day_length = 60 * kSecond;

  // From step_from to step_to the rate is so many times itself.
  double step_factor = 1;
  Instant step_from = 0;
  Instant step_to = 0;

  // What is drawn for each request: a bucket by weight, a client of so many equal ones, a size by weight
  // (from 1).
  std::vector<double> buckets = {1};
  int first_client = 0;
  int clients = 1;
  std::vector<double> sizes = {1};

  int priority = 0;
  // From arrival; kNever for none.
  Instant deadline = 100 * kMillisecond;
  Instant timeout = kNever;
  // What share is cancelled, at a time drawn from arrival to twice the deadline.
  double cancelled = 0;
};

struct Arrival {
  Instant at = 0;
  int bucket = 0;
  int client = 0;
  int64_t size = 1;
  // kNever if the client stays.
  Instant cancel_at = kNever;
};

// A renewal process. Two streams that differ in their rate alone have the same gaps, scaled, and the
// same requests.
class Stream {
 public:
  Stream(const StreamOptions& options, uint64_t seed);

  // The next one, not earlier than those before; also beyond `to`.
  Arrival Next();

  const StreamOptions& options() const { return options_; }

 private:
  double RateAt(double seconds) const;

  const StreamOptions options_;
  const Choice bucket_;
  const Choice size_;
  // Of its own, because a gamma variable takes as many numbers as it happens to.
  Random gaps_;
  Random requests_;
  double seconds_ = 0;
};

// Streams of one simulation draw from generators of their own, so that one does not shift another's numbers.
uint64_t StreamSeed(uint64_t seed, size_t stream);

}  // namespace saccade::server::simulation
