// Metrics of the decode workers: how many there are, and why they ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace saccade::server {

struct Families;

// Created by Metrics::ForDecodeWorkers(). Must not outlive its Metrics. Thread-safe.
class DecodeMetrics {
 public:
  ~DecodeMetrics();

  // Counts a worker that ended for the reason at this position of the list that was given to
  // Metrics::ForDecodeWorkers().
  void RecordEnd(size_t reason);
  // The workers that decode and those that wait, and how many were started so far. Called by one thread at a
  // time.
  void SetWorkers(int64_t busy, int64_t idle, int64_t started);

 private:
  friend class Metrics;
  struct Series;
  DecodeMetrics(Families* families, const std::vector<std::string_view>& reasons);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
