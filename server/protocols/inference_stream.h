// ModelStreamInfer: many requests on one stream, each answered once, in the order in which they came.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/core/clock.h"
#include "server/engine/pipeline.h"
#include "server/inference/inference.h"
#include "server/protocols/inference_answer.h"
#include "server/protocols/inference_request.h"
#include "server/protocols/ordered_stream.h"
#include "server/protocols/slow_readers.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// A request that fails fails alone, as error_message in its answer. If the client's metadata say
// triton_grpc_error "true", the first failure ends the stream with its status instead.
class InferenceStream final : public OrderedStream {
 public:
  // All must outlive it.
  struct Server {
    Inference* inference;
    Pipeline* pipeline;
    const SharedMemory* shared_memory;
    Clock* clock;
    SlowReaders* slow_readers;
    // Of one answer; and about what requests and answers of the stream may hold together.
    int64_t max_message_bytes;
  };

  static constexpr int64_t kMaxRequests = 256;

  // For gRPC to own until the stream is over. As ever with its callbacks, calls may come before this returns.
  static InferenceStream* Start(const Server& server, grpc::CallbackServerContext* context);

 private:
  InferenceStream(const Server& server, grpc::CallbackServerContext* context);

  void Take(const std::shared_ptr<Slot>& slot) override;
  void Answer(const std::shared_ptr<Slot>& slot, const std::shared_ptr<InferenceRequest>& request,
              absl::StatusOr<TensorAnswer> outcome, CallRecord* record);
  absl::StatusOr<InferenceAnswer> ToFinalAnswer(const std::shared_ptr<InferenceRequest>& request,
                                                absl::StatusOr<TensorAnswer> outcome) const;

  const Server server_;
  const bool errors_end_it_;
};

}  // namespace saccade::server
