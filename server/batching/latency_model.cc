#include "server/batching/latency_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "server/batching/largest_fitting.h"

namespace saccade::server {
namespace {

// Weight of the newest pass after many passes: the estimate follows a change of the machine's speed within
// about ten passes.
constexpr double kMinPassWeight = 0.12;
// Share of a pass's deviation that is attributed to all sizes; the rest is attributed to its own size.
// Constant, so that a slow spell leaves no trace when it is over.
constexpr double kCommonShare = 0.75;
constexpr double kMinVarianceWeight = 1.0 / 64;
// Initial guess of the relative standard deviation, which counts as this many passes.
constexpr double kGuessedDeviation = 0.03;
constexpr double kGuessedPasses = 8;
// The initial value of a knot, interpolated between its neighbours, counts as this many passes.
constexpr double kLinePasses = 2;
// Upper bound of the ratio of measured to expected time, because a pass that hung says little about the next
// one.
constexpr double kMaxSlowdown = 2.5;
// Largest size whose mean is kept.
constexpr int64_t kMaxSmall = 64;

}  // namespace

LatencyModel::LatencyModel(int64_t max_size)
    : small_(std::min(max_size, kMaxSmall) + 1),
      relative_variance_(kGuessedDeviation * kGuessedDeviation),
      margin_(1 + 3 * kGuessedDeviation) {
  // The knots: 1, 2, 3, 4, 6, 8, 12, 16, 24, ...
  for (int64_t size = 1; size < max_size; size *= 2) {
    knots_.push_back({.size = size});
    if (size > 1 && size * 3 / 2 < max_size) knots_.push_back({.size = size * 3 / 2});
  }
  knots_.push_back({.size = max_size});
}

void LatencyModel::Learn(int64_t size, Nanos took) {
  if (first_ != 0 && size >= first_ && size <= last_) {
    Draw(size, took);
  } else {
    Extend(size, took);
  }
  Fill();
}

bool LatencyModel::Doubt(Nanos time) {
  // Maximum factor by which a machine can become faster.
  constexpr double kMaxSpeedup = 20;
  if (Mean(1) / doubt_ > kMaxSpeedup * time) return false;
  constexpr double kMeanFactor = 0.7;
  constexpr double kVarianceFactor = 0.5;
  doubt_ *= kMeanFactor;
  scale_ *= kMeanFactor;
  relative_variance_ *= kVarianceFactor;
  margin_ = 1 + 3 * std::sqrt(relative_variance_);
  Fill();
  return true;
}

void LatencyModel::Draw(int64_t size, Nanos took) {
  const Neighbours knots = Around(size);
  // Uses the knots and not Mean(): since Mean() never decreases with the size, a size that is quicker than a
  // smaller one would look wrong forever.
  const double ratio = std::min(took * doubt_ / (knots.mean() * scale_), kMaxSlowdown);
  if (doubt_ < 1) {
    // The first pass after a doubt decides: undo the doubt and adopt the pass's ratio completely.
    scale_ /= std::exchange(doubt_, 1);
    Move(knots, ratio);
    return;
  }
  const double off = ratio - 1;
  const double bounded = std::clamp(off, -1.0, 1.0);
  const double variance_weight = std::max(kMinVarianceWeight, 1 / (kGuessedPasses + ++passes_));
  relative_variance_ += variance_weight * (bounded * bounded - relative_variance_);
  margin_ = 1 + 3 * std::sqrt(relative_variance_);
  knots.above->passes += knots.nearness;
  if (knots.above != knots.below) knots.below->passes += 1 - knots.nearness;
  const double passes = knots.above->passes * knots.nearness + knots.below->passes * (1 - knots.nearness);
  Move(knots, 1 + std::max(kMinPassWeight, 1 / (kLinePasses + passes)) * off);
}

LatencyModel::Neighbours LatencyModel::Around(int64_t size) {
  const auto above = std::lower_bound(knots_.begin(), knots_.end(), size,
                                      [](const Knot& knot, int64_t wanted) { return knot.size < wanted; });
  const auto below = above->size == size ? above : above - 1;
  const double gap = static_cast<double>(std::max<int64_t>(1, above->size - below->size));
  return {&*below, &*above, above == below ? 1 : static_cast<double>(size - below->size) / gap};
}

// Increases and decreases are split in the same way; otherwise scale_ and the knots would drift apart, and
// with them the estimates of other sizes.
void LatencyModel::Move(const Neighbours& knots, double factor) {
  scale_ *= std::pow(factor, kCommonShare);
  knots.above->mean *= std::pow(factor, (1 - kCommonShare) * knots.nearness);
  if (knots.above != knots.below)
    knots.below->mean *= std::pow(factor, (1 - kCommonShare) * (1 - knots.nearness));
}

// Handles a pass outside of [first_, last_]. It says nothing about the doubted sizes, so all doubts are
// undone.
void LatencyModel::Extend(int64_t size, Nanos took) {
  scale_ /= std::exchange(doubt_, 1);
  Fill();
  took /= scale_;
  const auto set = [this](int64_t from, int64_t to, Nanos at_from, Nanos slope) {
    for (Knot& knot : knots_) {
      if (knot.size >= from && knot.size <= to)
        knot.mean = at_from + slope * static_cast<double>(knot.size - from);
    }
  };
  const int64_t max = knots_.back().size;
  if (first_ == 0) {
    // Until more is known, each additional item costs as much as one of this pass, and smaller batches take
    // as long as this one.
    set(1, size, took, Nanos());
    set(size, max, took, took / static_cast<double>(size));
    first_ = last_ = size;
  } else if (size > last_) {
    const Nanos last = Mean(last_) / scale_;
    set(last_, max, last, std::max(Nanos(), took - last) / static_cast<double>(size - last_));
    last_ = size;
  } else {
    const Nanos first = Mean(first_) / scale_;
    const Nanos slope = std::max(Nanos(), first - took) / static_cast<double>(first_ - size);
    if (first_ == last_) set(last_, max, first, slope);
    set(1, size, took, Nanos());
    set(size, first_ - 1, took, slope);
    first_ = size;
  }
}

void LatencyModel::Fill() {
  knots_.front().floor = knots_.front().mean * scale_;
  for (size_t i = 0; i + 1 < knots_.size(); ++i) {
    Knot& low = knots_[i];
    Knot& high = knots_[i + 1];
    low.step = (high.mean - low.mean) / static_cast<double>(high.size - low.size);
    // A larger size never takes less, even if single passes suggest it.
    high.floor = std::max(high.mean * scale_, Between(low, high.size - 1));
  }
  for (size_t size = 1; size < small_.size(); ++size) {
    const auto wanted = static_cast<int64_t>(size);
    small_[size] = Between(Below(wanted), wanted);
  }
  const int64_t max = knots_.back().size;
  each_ = max == 1 ? Mean(1) : std::max(Nanos(), Mean(max) - Mean(1)) / static_cast<double>(max - 1);
  fixed_ = std::max(Nanos(), Mean(1) - each_);
}

const LatencyModel::Knot& LatencyModel::Below(int64_t size) const {
  if (size >= knots_.back().size) return knots_.back();
  if (size <= 1) return knots_.front();
  // Apart from the maximum size, the knots are 1, and the powers of two with their halves more.
  const size_t power = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(size))) - 1;
  const bool half_more = ((size >> (power - 1)) & 1) != 0;
  return knots_[std::min(2 * power - 1 + (half_more ? 1U : 0U), knots_.size() - 1)];
}

Nanos LatencyModel::Between(const Knot& below, int64_t size) const {
  return std::max(below.floor, (below.mean + below.step * static_cast<double>(size - below.size)) * scale_);
}

double LatencyModel::deviation() const { return std::sqrt(relative_variance_); }

int64_t LatencyModel::LargestWithin(Nanos time, int64_t max) const {
  const Nanos mean = time / margin_;
  return LargestFitting(/*least=*/0, max, [&](int64_t size) { return Mean(size) <= mean; });
}

}  // namespace saccade::server
