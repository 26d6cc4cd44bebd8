#include "server/simulation/slotted_arrivals.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "server/simulation/random.h"

namespace saccade::server::simulation {
namespace {

constexpr int kGaps = 100'000;
constexpr size_t kMaxStates = 9;
// The last state begins where at most this share of the gaps is longer.
constexpr double kRareGap = 0.01;

// The gaps of a memoryless stream say nothing, so there is one state.
SlottedArrivals Memoryless(double per_slot) {
  SlottedArrivals arrivals;
  const double none = std::exp(-per_slot);
  arrivals.states = {{.arrives = 1 - none}};
  double probability = none;
  for (int count = 1; count <= per_slot || probability > 1e-6; ++count) {
    probability *= per_slot / count;
    arrivals.counts.push_back(probability / (1 - none));
  }
  return arrivals;
}

}  // namespace

size_t SlottedArrivals::StateAfter(double slots) const {
  size_t state = 0;
  while (state + 1 < states.size() && states[state + 1].from <= slots) ++state;
  return state;
}

// An item arrives anywhere in its slot, so a gap of x slots reaches over j slots with the probability
// clamp(x - j, 0, 1).
SlottedArrivals ArrivalsOf(double per_slot, double cv) {
  if (cv == 1) return Memoryless(per_slot);
  Random random(1);
  std::vector<double> gaps(kGaps);
  for (double& gap : gaps) gap = random.Gamma(cv) / per_slot;
  // The mean number of slots of [from, to) that a gap reaches over.
  const auto reached = [&](double from, double to) {
    double sum = 0;
    for (const double gap : gaps) sum += std::clamp(gap - from, 0.0, to - from);
    return sum / kGaps;
  };
  SlottedArrivals arrivals;
  const double ends_slot = reached(0, 1);
  arrivals.counts = {ends_slot};
  arrivals.more = 1 - ends_slot;
  for (double from = 0, to = 1; arrivals.states.size() < kMaxStates; from = to, to *= 2) {
    const double begins = reached(from, from + 1);
    const double goes_on = reached(to, to + 1);
    const bool last = goes_on < kRareGap * ends_slot || arrivals.states.size() + 1 == kMaxStates;
    const double slots = reached(from, last ? INFINITY : to);
    arrivals.states.push_back({.from = from,
                               .arrives = (begins - (last ? 0 : goes_on)) / slots,
                               .advances = last ? 0 : goes_on / slots});
    if (last) break;
  }
  return arrivals;
}

}  // namespace saccade::server::simulation
