// saccade.v1.Vision over gRPC.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/catalog/catalog.h"
#include "server/core/clock.h"
#include "server/engine/pipeline.h"
#include "server/grpc/call.h"
#include "server/grpc/unary.h"
#include "server/net/work_pool.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision/uploads.h"

namespace saccade::server {

// Thread-safe; no call blocks.
class VisionService {
 public:
  struct Options {
    // Larger answers become errors that say so.
    int64_t max_message_bytes;
    // Requests of one PredictStream that may be in flight.
    int64_t max_stream_requests;
    // The time that a volume sent to Restore may take to arrive, and the rate at which it must, measured
    // after the grace.
    absl::Duration upload_timeout;
    int64_t min_upload_bytes_per_second = 256 << 10;
    absl::Duration upload_grace = absl::Seconds(10);
    // Spreads the retry hints of rejections.
    RetryJitter* retry_jitter;
    // Reads large requests. Null: the thread that received them does.
    WorkPool* pool = nullptr;
  };

  // All must outlive the service.
  VisionService(const Options& options, Pipeline* pipeline, const Catalog* catalog, Clock* clock)
      : options_(options), pipeline_(pipeline), catalog_(catalog), clock_(clock) {}

  // The service must outlive the methods and their calls.
  std::vector<CallMethod> Methods();

  // Ends uploads that take too long. Call several times a second.
  void Sweep() { uploads_.Sweep(clock_->Now()); }
  // Ends the uploads that are not complete with UNAVAILABLE, and those that begin later. Call when the server
  // drains: they would keep it from becoming idle.
  void EndUploads();

 private:
  // A Predict until it is answered.
  struct Prediction;

  void Predict(std::shared_ptr<UnaryCall> call, BytePieces received);
  std::shared_ptr<CallHandler> PredictStream();
  std::shared_ptr<CallHandler> Restore();

  const Options options_;
  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  Clock* const clock_;
  Uploads uploads_;
};

}  // namespace saccade::server
