// PredictStream: many typed requests on one stream, each answered once, in the order in which they came.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/pipeline.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/slow_readers.h"

namespace saccade::server {

// A request that fails fails alone, be it refused, late, or no message at all: its answer is the error.
//
// Beyond `most_requests` that are in flight, or computed and not sent yet, or about `max_message_bytes` that
// these hold together, nothing is read until the first of them is sent, and gRPC's flow control stops the
// client. When the client goes away, what waits is dropped.
class VisionStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public std::enable_shared_from_this<VisionStream> {
 public:
  // All must outlive it.
  struct Server {
    Pipeline* pipeline;
    const Catalog* catalog;
    Clock* clock;
    SlowReaders* slow_readers;
    RetryJitter* retry_jitter;
    // Of one answer, too.
    int64_t max_message_bytes;
    int64_t most_requests;
  };

  // For gRPC to own until the stream is over. As ever with its callbacks, calls may come before this returns.
  static VisionStream* Start(const Server& server, grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  // A request until its answer is sent.
  struct Slot;
  enum class Action { kNone, kWrite, kRead, kFinish };

  VisionStream(const Server& server, grpc::CallbackServerContext* context);

  void Take(const std::shared_ptr<Slot>& slot);
  absl::StatusOr<Request> ReadRequest(Slot& slot, absl::Time arrival) const;
  void Answer(const std::shared_ptr<Slot>& slot, const absl::StatusOr<Response>& outcome);
  // Nothing more is read or written.
  void Stop(const grpc::Status& status);
  // Does what can be done next, until there is nothing. Of several threads that come here, one does it.
  void Proceed() ABSL_LOCKS_EXCLUDED(mutex_);
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Action action) ABSL_LOCKS_EXCLUDED(mutex_);

  const Server server_;
  grpc::CallbackServerContext* const context_;
  const absl::Time deadline_;
  // Until gRPC is done; what the pipeline still has keeps the stream alive longer.
  std::shared_ptr<VisionStream> self_;

  // Of the read and the write under way; each is one at a time.
  grpc::ByteBuffer received_;
  grpc::ByteBuffer sending_;
  // Of the reads alone, which come one after the other.
  int64_t next_index_ = 0;

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
