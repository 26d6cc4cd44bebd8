// A stream of many requests, each answered once, in the order in which they came.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/cancellation.h"
#include "server/protocols/slow_readers.h"

namespace saccade::server {

class AnswerCharge;

// Beyond `max_requests` that are in flight, or computed and not sent yet, or about `max_bytes` that these
// hold together, nothing is read until the first of them is sent, and gRPC's flow control stops the client.
// When the client goes away, what waits is dropped.
class OrderedStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                      public std::enable_shared_from_this<OrderedStream> {
 public:
  struct Bounds {
    int64_t max_requests;
    int64_t max_bytes;
  };

  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final { self_.reset(); }

 protected:
  // A request until its answer is sent.
  struct Slot {
    // From 0.
    int64_t index = 0;
    // Cancelled when the stream stops.
    const std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();
    grpc::ByteBuffer received = {};
    // Lives until the answer is sent, which may point into it.
    std::shared_ptr<const void> request = nullptr;

   private:
    friend class OrderedStream;
    // The rest is the stream's mutex's.
    int64_t bytes = 0;
    // As Response has it, until the answer is sent.
    std::shared_ptr<const AnswerCharge> charge = nullptr;
    std::optional<grpc::ByteBuffer> answer = std::nullopt;
  };

  // `slow_readers` must outlive it.
  OrderedStream(Bounds bounds, SlowReaders* slow_readers, grpc::CallbackServerContext* context);

  // The first call, of a stream that a shared pointer owns; it lives until gRPC is done with it, and longer
  // as long as somebody has shared_from_this(). As ever with gRPC's callbacks, calls may come before this
  // returns.
  void Begin();

  // A request has come; Send is to follow, once. One call at a time, in the order of the requests.
  virtual void Take(const std::shared_ptr<Slot>& slot) = 0;
  // `charge`, if there is one, is kept until the answer is sent.
  void Send(const std::shared_ptr<Slot>& slot, const grpc::ByteBuffer& answer,
            std::shared_ptr<const AnswerCharge> charge);
  // Nothing more is read or written; once all that was taken is answered, `status` ends the stream.
  void Stop(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CallbackServerContext* context() const { return context_; }
  // The client's.
  absl::Time deadline() const { return deadline_; }

 private:
  enum class Action { kNone, kWrite, kRead, kFinish };

  // Does what can be done next, until there is nothing. Of several threads that come here, one does it.
  void Proceed() ABSL_LOCKS_EXCLUDED(mutex_);
  Action NextAction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Action action) ABSL_LOCKS_EXCLUDED(mutex_);

  const Bounds bounds_;
  SlowReaders* const slow_readers_;
  grpc::CallbackServerContext* const context_;
  const absl::Time deadline_;
  std::shared_ptr<OrderedStream> self_;

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
