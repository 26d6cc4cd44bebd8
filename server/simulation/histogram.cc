#include "server/simulation/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace saccade::server::simulation {
namespace {

// Each octave is divided into 2^kBits steps.
constexpr int kBits = 9;

size_t StepOf(uint64_t value) {
  const int exponent = std::max(0, static_cast<int>(std::bit_width(value)) - kBits - 1);
  return (static_cast<size_t>(exponent) << kBits) + (value >> exponent);
}

// The largest value that falls into a step.
Nanos TopOf(size_t step) {
  if (step < (size_t{2} << kBits)) return Nanos(static_cast<double>(step));
  const size_t exponent = (step >> kBits) - 1;
  const uint64_t first = step - (exponent << kBits);
  return Nanos(static_cast<double>(((first + 1) << exponent) - 1));
}

}  // namespace

void Histogram::Add(Nanos span) {
  const size_t step = StepOf(static_cast<uint64_t>(std::max(span, Nanos()).count()));
  if (step >= counts_.size()) counts_.resize(step + 1);
  ++counts_[step];
  ++count_;
}

Nanos Histogram::Percentile(double q) const {
  const auto wanted = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(q * static_cast<double>(count_))));
  int64_t seen = 0;
  for (size_t step = 0; step < counts_.size(); ++step) {
    seen += counts_[step];
    if (seen >= wanted) return TopOf(step);
  }
  return {};
}

}  // namespace saccade::server::simulation
