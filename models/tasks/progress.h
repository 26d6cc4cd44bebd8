// How far a pass that takes long has come.
#pragma once

#include <algorithm>
#include <functional>

namespace saccade::models {

// Thrown out of a pass whose result nobody wants any more.
struct Unwanted {};

class Progress {
 public:
  // `report` gets what part is done, from 0 to 1 and never less than before, and says whether to go on; it
  // may be empty. `total` is in what Add counts.
  using Report = std::function<bool(double done)>;
  Progress(Report report, double total) : report_(std::move(report)), total_(total) {}

  // Throws Unwanted if the report says so.
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
