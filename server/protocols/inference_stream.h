// ModelStreamInfer: many requests on one stream, each answered once, in the order in which they came.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/inference/inference.h"
#include "server/pipeline/pipeline.h"
#include "server/protocols/inference_answer.h"
#include "server/protocols/slow_readers.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// A request that fails fails alone, as error_message in its answer. If the client's metadata say
// triton_grpc_error "true", the first failure ends the stream with its status instead.
//
// So many requests of a stream may be in flight, or computed and not sent yet; then nothing more is read
// until the first of them is sent, and gRPC's flow control stops the client.
class InferenceStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                              public std::enable_shared_from_this<InferenceStream> {
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

  static constexpr size_t kMostRequests = 256;

  // For gRPC to own until the stream is over. As ever with its callbacks, calls may come before this returns.
  static InferenceStream* Start(const Server& server, grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  // A request until its answer is sent.
  struct Slot;
  enum class Action { kNone, kWrite, kRead, kFinish };

  InferenceStream(const Server& server, grpc::CallbackServerContext* context);

  void Take(const std::shared_ptr<Slot>& slot);
  void Answer(const std::shared_ptr<Slot>& slot, absl::StatusOr<TensorAnswer> outcome);
  absl::StatusOr<InferenceAnswer> ToFinalAnswer(const Slot& slot, absl::StatusOr<TensorAnswer> outcome) const;
  // Nothing more is read or written.
  void Stop(const grpc::Status& status);
  // Does what can be done next, until there is nothing. Of several threads that come here, one does it.
  void Proceed() ABSL_LOCKS_EXCLUDED(mutex_);
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Action action);

  const Server server_;
  grpc::CallbackServerContext* const context_;
  const absl::Time deadline_;
  const bool errors_end_it_;
  // Until gRPC is done; what the pipeline still has keeps the stream alive longer.
  std::shared_ptr<InferenceStream> self_;

  // Of the read and the write under way; each is one at a time.
  grpc::ByteBuffer received_;
  grpc::ByteBuffer sending_;

  absl::Mutex mutex_;
  // In the order of the requests. The first stays until it is sent.
  std::deque<std::shared_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  // Those that were not answered yet, wherever they are.
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the slots' requests and answers.
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Whether slow_readers watches the write under way.
  bool watched_ ABSL_GUARDED_BY(mutex_) = false;
  bool acting_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_) = grpc::Status::OK;
};

}  // namespace saccade::server
