// ModelStreamInfer: many requests on one stream, each answered once, in the order in which they came.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/core/clock.h"
#include "server/engine/pipeline.h"
#include "server/inference/inference.h"
#include "server/protocols/call_scope.h"
#include "server/protocols/capture_headers.h"
#include "server/protocols/inference/answer.h"
#include "server/protocols/inference/request.h"
#include "server/protocols/ordered_stream.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// A request that fails does not affect the others: its answer has an error_message. If the client's metadata
// contain triton_grpc_error "true", the first failure ends the stream with its status instead.
class InferenceStream final : public OrderedStream {
 public:
  // All must outlive the stream.
  struct Server {
    Inference* inference;
    Pipeline* pipeline;
    const SharedMemory* shared_memory;
    Clock* clock;
    // Reads large requests, and signs large answers. Null: the thread that has them does.
    WorkPool* pool;
    // Maximum size of an answer, and about that of the stream's requests and answers together.
    int64_t max_message_bytes;
  };

  static constexpr int64_t kMaxRequests = 256;

  explicit InferenceStream(const Server& server)
      : OrderedStream({kMaxRequests, server.max_message_bytes},
                      {server.pool, server.pipeline->deps().admission}),
        server_(server) {}

 private:
  void OnArrival() override;
  void Take(const std::shared_ptr<Slot>& slot, BytePieces message) override;
  void Reject(const std::shared_ptr<Slot>& slot, const BytePieces& message, const absl::Status& why) override;
  size_t BytesToParse(const BytePieces& message) const override {
    return BytesToRead(message, server_.shared_memory->allowed(),
                       CaptureIfEnabled(server_.pipeline->deps().capture) != nullptr);
  }
  void Answer(const std::shared_ptr<Slot>& slot, const std::shared_ptr<InferenceRequest>& request,
              absl::StatusOr<TensorAnswer> outcome, const CallScope& scope);
  absl::StatusOr<InferenceAnswer> ToFinalAnswer(const std::shared_ptr<InferenceRequest>& request,
                                                absl::StatusOr<TensorAnswer> outcome) const;

  const Server server_;
  // Set by OnArrival().
  bool errors_end_it_ = false;
};

}  // namespace saccade::server
