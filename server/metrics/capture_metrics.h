// Counts captured and dropped calls, and the events that were made of them.
#pragma once

#include <cstdint>
#include <memory>

namespace saccade::server {

struct Families;

enum class CaptureLoss { kQueueFull, kWriteFailed, kTooLarge, kTooManyFaults };
enum class EventLoss { kQueueFull, kSendFailed };

// Created by Metrics::ForCapture(). Must not outlive its Metrics. Thread-safe.
class CaptureMetrics {
 public:
  ~CaptureMetrics();

  void AddWritten(int64_t bytes);
  void AddDropped(CaptureLoss why);
  // The bytes of all segments.
  void SetBytes(int64_t bytes);
  void AddEventsSent(int64_t events);
  void AddEventsDropped(EventLoss why, int64_t events);

 private:
  friend class Metrics;
  struct Series;
  explicit CaptureMetrics(Families* families);

  std::unique_ptr<Series> series_;
};

}  // namespace saccade::server
