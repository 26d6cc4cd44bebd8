// PredictStream: many typed requests on one stream, each answered once, in the order in which they came.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "saccade/v1/vision.pb.h"
#include "server/catalog/catalog.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/engine/pipeline.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/ordered_stream.h"
#include "server/protocols/retry_jitter.h"

namespace saccade::server {

// A request that is refused, late, or cannot be parsed does not affect the others: its answer is the error.
class VisionStream final : public OrderedStream {
 public:
  // All must outlive the stream.
  struct Server {
    Pipeline* pipeline;
    const Catalog* catalog;
    Clock* clock;
    RetryJitter* retry_jitter;
    // Reads large requests. Null: the thread that received them does.
    WorkPool* pool;
    // Maximum size of an answer, and about that of the stream's requests and answers together.
    int64_t max_message_bytes;
    int64_t max_requests;
  };

  explicit VisionStream(const Server& server)
      : OrderedStream({server.max_requests, server.max_message_bytes},
                      {server.pool, server.pipeline->deps().admission}),
        server_(server) {}

 private:
  // A request until its answer is made.
  struct Item;

  void Take(const std::shared_ptr<Slot>& slot, BytePieces received) override;
  void Reject(const std::shared_ptr<Slot>& slot, const BytePieces& message, const absl::Status& why) override;
  absl::StatusOr<Request> ReadRequest(const Slot& slot, const CallScope& scope, Item& item) const;
  // `message` contains the answer if `outcome` is a success.
  void Answer(const std::shared_ptr<Slot>& slot, const Item& item, v1::PredictStreamResponse message,
              const absl::StatusOr<Response>& outcome, const CallScope& scope);

  const Server server_;
};

}  // namespace saccade::server
