// Decides whether a layer on a GPU computes with a fused function of a library or with the plain functions
// that it replaces: by comparing both on the device, and by timing them there.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <string>

#include "models/api/target.h"

namespace saccade::models {

// Computes a map from a map; `other` is what is added to it, or undefined.
using MapFunction = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& other)>;

struct FusedVerdict {
  bool fused = false;
  std::string reason;  // why the plain functions are used; empty if they are not
  bool threw = false;  // whether an exception is the reason, which may not come again
};

// Maximum difference between both functions' results, as a part of the largest result.
double FusedTolerance(Precision precision);

// Compares two functions. Neither `plain` nor `fused` may change its arguments.
struct FusedTrial {
  // The fused function has to take less than this part of the plain one's time, so that noise chooses
  // nothing.
  static constexpr double kWorthwhile = 0.95;
  // Maximum seconds of the fused function's first call. Libraries compile kernels in it, for each shape anew.
  static constexpr double kMaxPreparationSeconds = 0.1;
  static constexpr int kRounds = 3;
  static constexpr int kCallsOfRound = 4;

  MapFunction plain;
  MapFunction fused;
  // Waits until the device has computed everything, and returns the time in seconds.
  std::function<double()> now;
  double tolerance = 0;

  // Calls both with random numbers of the shapes and types of `x` and `other`. They are drawn on the CPU by a
  // generator of their own, because a GPU's belongs to a recording as long as one is captured there. Accepts
  // the fused function only if it computes the same map within the tolerance, in the same layout; does not
  // read memory that nobody wrote; leaves NaN as NaN, because answers that are not finite are failures; and
  // is faster. An exception of either function is a reason against it.
  FusedVerdict Run(const at::Tensor& x, const at::Tensor& other) const;
};

// One layer's choice. Thread-safe.
class FusedChoice {
 public:
  // Trials that are run if each throws; then the plain functions stay, and the log says why, once for all
  // layers. A recording runs a pass twice before it captures it, so that none is run during a capture.
  static constexpr int kMaxTrials = 2;

  // Returns the verdict, which `run` computes in the first call, and once more if it threw. Blocks while
  // another thread does so.
  FusedVerdict Get(const std::function<FusedVerdict()>& run);

 private:
  std::mutex mutex_;
  int trials_ = 0;        // guarded by mutex_
  FusedVerdict verdict_;  // guarded by mutex_
};

}  // namespace saccade::models
