// Creates and owns the parts of the capture of calls, as the flags configure them: files, sink, metrics.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/capture/capture.h"
#include "server/capture/event_client.h"
#include "server/capture/event_sink.h"
#include "server/core/clock.h"
#include "server/lifecycle/flags.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

class CaptureSetup {
 public:
  // Configured by the flags. Errors can be printed as they are. `metrics` and `clock` must outlive this
  // object.
  static absl::StatusOr<std::unique_ptr<CaptureSetup>> Create(const Flags& flags, Metrics* metrics,
                                                              Clock* clock);

  // Null if calls are not captured. This object must outlive every call.
  Capture* capture() const { return capture_.get(); }

  void RefreshGauges();

  // Writes and sends what is queued for at most `max` each, but what the disk takes for the last one; later
  // calls are dropped. Thread-safe: a thread that the daemon's end left behind may still be in here.
  void Stop(absl::Duration max) ABSL_LOCKS_EXCLUDED(stop_mutex_);

 private:
  CaptureSetup() = default;
  absl::Status MakeSink(const CaptureOptions& options, Clock* clock);
  absl::Status MakeCapture(const CaptureOptions& options, Clock* clock);

  absl::Mutex stop_mutex_;
  std::unique_ptr<CaptureMetrics> metrics_;
  std::unique_ptr<EventClient> client_;
  std::unique_ptr<EventSink> sink_;
  std::unique_ptr<Capture> capture_;
};

}  // namespace saccade::server
