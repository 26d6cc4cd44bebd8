// Times in nanoseconds. The scheduler computes with them rather than with absl::Time and absl::Duration,
// because its estimates are averages with fractions of a nanosecond, and because a decision takes only about
// 0.2 us.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace saccade::server {

// A span of time. Whole nanoseconds are exact up to 104 days.
class Nanos {
 public:
  constexpr Nanos() = default;
  constexpr explicit Nanos(double count) : count_(count) {}
  explicit Nanos(absl::Duration span) : count_(absl::ToDoubleNanoseconds(span)) {}

  static constexpr Nanos Infinite() { return Nanos(std::numeric_limits<double>::infinity()); }

  constexpr double count() const { return count_; }

  // Without the fraction. REQUIRES: the span is shorter than 292 years.
  constexpr Nanos Whole() const { return Nanos(static_cast<double>(static_cast<int64_t>(count_))); }

  constexpr auto operator<=>(const Nanos&) const = default;

  constexpr Nanos& operator+=(Nanos other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Nanos& operator-=(Nanos other) {
    count_ -= other.count_;
    return *this;
  }
  constexpr Nanos& operator*=(double factor) {
    count_ *= factor;
    return *this;
  }
  constexpr Nanos& operator/=(double divisor) {
    count_ /= divisor;
    return *this;
  }
  friend constexpr Nanos operator+(Nanos a, Nanos b) { return Nanos(a.count_ + b.count_); }
  friend constexpr Nanos operator-(Nanos a, Nanos b) { return Nanos(a.count_ - b.count_); }
  friend constexpr Nanos operator*(Nanos a, double b) { return Nanos(a.count_ * b); }
  friend constexpr Nanos operator*(double a, Nanos b) { return Nanos(a * b.count_); }
  friend constexpr Nanos operator/(Nanos a, double b) { return Nanos(a.count_ / b); }
  friend constexpr double operator/(Nanos a, Nanos b) { return a.count_ / b.count_; }

 private:
  double count_ = 0;
};

inline constexpr Nanos kMicrosecond{1e3};
inline constexpr Nanos kMillisecond{1e6};
inline constexpr Nanos kSecond{1e9};

// Rounded toward zero, to whole nanoseconds. Infinite spans stay infinite.
inline absl::Duration ToDuration(Nanos span) {
  return span == Nanos::Infinite() ? absl::InfiniteDuration()
                                   : absl::Nanoseconds(static_cast<int64_t>(span.count()));
}

// A point in time: whole nanoseconds since the Unix epoch.
class NanoTime {
 public:
  // The epoch.
  constexpr NanoTime() = default;
  // absl::InfiniteFuture() becomes Never().
  explicit NanoTime(absl::Time at) : since_epoch_(absl::ToUnixNanos(at)) {}

  static constexpr NanoTime Never() { return NanoTime(std::numeric_limits<int64_t>::max()); }

  // Rounded as double.
  constexpr Nanos SinceEpoch() const { return Nanos(static_cast<double>(since_epoch_)); }

  // Never() becomes absl::InfiniteFuture().
  absl::Time ToTime() const {
    return *this == Never() ? absl::InfiniteFuture() : absl::FromUnixNanos(since_epoch_);
  }

  constexpr auto operator<=>(const NanoTime&) const = default;

  // Spans are rounded toward zero. A sum that would overflow is Never().
  friend constexpr NanoTime operator+(NanoTime at, Nanos span) {
    const double sum = static_cast<double>(at.since_epoch_) + span.count();
    return sum >= 9e18 ? Never() : NanoTime(at.since_epoch_ + static_cast<int64_t>(span.count()));
  }
  friend constexpr NanoTime operator-(NanoTime at, Nanos span) {
    return NanoTime(at.since_epoch_ - static_cast<int64_t>(span.count()));
  }
  friend constexpr Nanos operator-(NanoTime a, NanoTime b) {
    return Nanos(static_cast<double>(a.since_epoch_ - b.since_epoch_));
  }
  NanoTime& operator+=(Nanos span) { return *this = *this + span; }

 private:
  constexpr explicit NanoTime(int64_t since_epoch) : since_epoch_(since_epoch) {}

  int64_t since_epoch_ = 0;
};

}  // namespace saccade::server
