// PredictStream: many typed requests on one stream, each answered once, in the order in which they came.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "saccade/v1/vision.pb.h"
#include "server/catalog/catalog.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/engine/pipeline.h"
#include "server/protocols/ordered_stream.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/slow_readers.h"

namespace saccade::server {

// A request that fails fails alone, be it refused, late, or no message at all: its answer is the error.
class VisionStream final : public OrderedStream {
 public:
  // All must outlive it.
  struct Server {
    Pipeline* pipeline;
    const Catalog* catalog;
    Clock* clock;
    SlowReaders* slow_readers;
    RetryJitter* retry_jitter;
    // Of one answer; and about what requests and answers of the stream may hold together.
    int64_t max_message_bytes;
    int64_t max_requests;
  };

  // For gRPC to own until the stream is over. As ever with its callbacks, calls may come before this returns.
  static VisionStream* Start(const Server& server, grpc::CallbackServerContext* context);

 private:
  VisionStream(const Server& server, grpc::CallbackServerContext* context);

  void Take(const std::shared_ptr<Slot>& slot) override;
  absl::StatusOr<Request> ReadRequest(Slot& slot, v1::PredictStreamRequest& message,
                                      absl::Time arrival) const;
  // `message` has the answer, of a success.
  void Answer(const std::shared_ptr<Slot>& slot, const v1::PredictRequest& request,
              v1::PredictStreamResponse message, const absl::StatusOr<Response>& outcome, CallRecord* record);

  const Server server_;
};

}  // namespace saccade::server
