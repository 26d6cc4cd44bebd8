// Series of a metric family that are removed with their last user. prometheus-cpp keeps a series until it is
// removed explicitly; an old and a new instance of a model share series while one replaces the other.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

template <typename T>
class SeriesPool;

// One user's reference to a series. Movable. Must not outlive its pool.
template <typename T>
class Series {
 public:
  Series(Series&& other) noexcept : pool_(other.pool_), metric_(std::exchange(other.metric_, nullptr)) {}
  Series& operator=(Series&&) = delete;
  ~Series() {
    if (metric_ != nullptr) pool_->Release(metric_);
  }

  T* operator->() const { return metric_; }
  T* get() const { return metric_; }

 private:
  friend class SeriesPool<T>;
  Series(SeriesPool<T>* pool, T* metric) : pool_(pool), metric_(metric) {}

  SeriesPool<T>* pool_;
  T* metric_;
};

// A metric family and its series. Thread-safe.
template <typename T>
class SeriesPool {
 public:
  SeriesPool(prometheus::Registry& registry, const std::string& name, const std::string& help,
             prometheus::Histogram::BucketBoundaries buckets = {})
      : family_(Build(registry, name, help)), buckets_(std::move(buckets)) {}

  Series<T> Get(const prometheus::Labels& labels) {
    absl::MutexLock lock(&mutex_);
    T* metric = nullptr;
    if constexpr (std::is_same_v<T, prometheus::Histogram>) {
      metric = &family_.Add(labels, buckets_);
    } else {
      metric = &family_.Add(labels);
    }
    ++users_[metric];
    return Series<T>(this, metric);
  }

 private:
  friend class Series<T>;

  static prometheus::Family<T>& Build(prometheus::Registry& registry, const std::string& name,
                                      const std::string& help) {
    return prometheus::detail::Builder<T>().Name(name).Help(help).Register(registry);
  }

  void Release(T* metric) {
    absl::MutexLock lock(&mutex_);
    const auto found = users_.find(metric);
    if (--found->second > 0) return;
    users_.erase(found);
    family_.Remove(metric);
  }

  prometheus::Family<T>& family_;
  const prometheus::Histogram::BucketBoundaries buckets_;
  absl::Mutex mutex_;
  std::unordered_map<T*, int> users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
