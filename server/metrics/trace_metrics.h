// Counts exported and dropped spans.
#pragma once

#include <cstdint>
#include <memory>

namespace saccade::server {

struct Families;

enum class SpanLoss { kQueueFull, kExportFailed, kRejected };

// Created by Metrics::ForTraces(). Must not outlive its Metrics. Thread-safe.
class TraceMetrics {
 public:
  ~TraceMetrics();

  void AddExported(int64_t spans);
  void AddDropped(SpanLoss why, int64_t spans);

 private:
  friend class Metrics;
  struct Series;
  explicit TraceMetrics(Families* families);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
