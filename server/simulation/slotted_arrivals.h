// Arrivals in slots of equal length, as a Markov chain: the distribution of what will arrive, without the
// arrivals themselves.
#pragma once

#include <cstddef>
#include <vector>

namespace saccade::server::simulation {

struct SlottedArrivals {
  // A range of silence: how many slots ago the last item arrived.
  struct State {
    // The least number of slots.
    double from = 0;
    // Probabilities that the next slot has arrivals, and that it has none and the next state is reached. With
    // arrivals, the next state is the first one.
    double arrives = 0;
    double advances = 0;
  };

  std::vector<State> states;
  // counts[i] is the probability of i + 1 items in a slot that has arrivals. What is left to 1 is the
  // probability of more items than counts.size(), each of which is followed by another one with the
  // probability `more`.
  std::vector<double> counts;
  double more = 0;

  // The state after that many slots without arrivals.
  size_t StateAfter(double slots) const;
};

// The arrivals of a Stream with `per_slot` requests per slot and this coefficient of variation of the gaps. A
// gap longer than a few slots is known by the range of its length only, whose ends are powers of two.
// REQUIRES: cv > 0.
SlottedArrivals ArrivalsOf(double per_slot, double cv);

}  // namespace saccade::server::simulation
