// The most recent sampled request in each bucket of a histogram. Dashboards link a bucket to its trace.
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/histogram.h>
#include <prometheus/labels.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/trace_id.h"

namespace saccade::server {

struct Exemplar {
  SampledSpan span = {};
  double value = 0;
  absl::Time at = {};

  bool operator==(const Exemplar&) const = default;
};

// By bucket. The last bucket has no upper bound.
using BucketExemplars = std::vector<std::optional<Exemplar>>;

// The exemplars of one histogram, at most one per bucket. Thread-safe.
class Exemplars {
 public:
  explicit Exemplars(prometheus::Histogram::BucketBoundaries bounds)
      : bounds_(std::move(bounds)), latest_(bounds_.size() + 1) {}

  void Keep(const Exemplar& exemplar) ABSL_LOCKS_EXCLUDED(mutex_);
  BucketExemplars Latest() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const prometheus::Histogram::BucketBoundaries bounds_;
  mutable absl::Mutex mutex_;
  BucketExemplars latest_ ABSL_GUARDED_BY(mutex_);
};

// Labels as a collected metric has them.
using MetricLabels = std::vector<prometheus::ClientMetric::Label>;
using ExemplarsByLabels = std::map<MetricLabels, BucketExemplars>;

// The exemplars of a family's histograms, each kept as long as it is in use: like the series themselves, an
// old and a new instance of a model share them. Thread-safe.
class ExemplarPool {
 public:
  explicit ExemplarPool(prometheus::Histogram::BucketBoundaries bounds) : bounds_(std::move(bounds)) {}

  std::shared_ptr<Exemplars> Get(const prometheus::Labels& labels) ABSL_LOCKS_EXCLUDED(mutex_);
  ExemplarsByLabels Latest() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const prometheus::Histogram::BucketBoundaries bounds_;
  mutable absl::Mutex mutex_;
  std::map<MetricLabels, std::weak_ptr<Exemplars>> exemplars_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
