// Reports the progress of a pass that takes long.
#pragma once

#include <algorithm>
#include <functional>

namespace saccade::models {

// Thrown to abandon a pass whose result is no longer needed.
struct Unwanted {};

class Progress {
 public:
  // `report` gets the completed part, from 0 to 1 and never decreasing, and returns whether to continue; it
  // may be empty. `total` is the sum of all calls to Add().
  using Report = std::function<bool(double done)>;
  Progress(Report report, double total) : report_(std::move(report)), total_(total) {}

  // Adds completed work. Throws Unwanted if the report returns false.
  void Add(double work) {
    done_ += work;
    if (report_ && !report_(std::min(done_ / total_, 1.0))) throw Unwanted();
  }

 private:
  Report report_;
  double total_;
  double done_ = 0;
};

}  // namespace saccade::models
