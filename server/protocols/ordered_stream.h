// A stream of many requests, each answered once, in the order in which they came.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/core/byte_ledger.h"
#include "server/core/byte_pieces.h"
#include "server/core/cancellation.h"
#include "server/net/work_pool.h"
#include "server/protocols/driven_call.h"

namespace saccade::server {

// While `max_requests` requests have no answer that was sent, or these hold about `max_bytes` together, no
// further message is read, and flow control stops the client. If the client goes away, answers that were not
// sent are dropped.
class OrderedStream : public DrivenCall {
 public:
  struct Bounds {
    int64_t max_requests;
    int64_t max_bytes;
  };

  // Shared by all streams. Null: large requests are taken by the network's thread; small answers are not
  // charged.
  struct Shared {
    WorkPool* pool = nullptr;
    ByteLedger* ledger = nullptr;
  };

  void OnMessage(BytePieces message) final;
  void OnHalfClose() final;
  void OnSent(bool ok) final;
  void OnCancel() final;
  // Reads no further, and ends the stream when the requests that were taken are answered.
  bool OnShutdown(const CallEnd& end) final;

 protected:
  // A request until its answer is sent.
  struct Slot {
    // From 0.
    int64_t index = 0;
    // Cancelled when the stream stops.
    const std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>();

   private:
    friend class OrderedStream;
    // Guarded by the stream's mutex, as all here. The size of the request, then that of the answer.
    int64_t bytes = 0;
    // Send() was called.
    bool is_answered = false;
    std::optional<BytePieces> answer = std::nullopt;
  };

  explicit OrderedStream(Bounds bounds, Shared shared = {nullptr, nullptr})
      : bounds_(bounds), shared_(shared) {}

  // A request has come; Send() has to be called once for it, on any thread. One call at a time, in the order
  // of the requests. The request counts with its size until it is answered. If this throws, or if `slot` is
  // dropped without a call of Send(), the stream ends.
  virtual void Take(const std::shared_ptr<Slot>& slot, BytePieces message) = 0;
  // Answers a request that the pool has no room for, so that its message must not be parsed. `why` is the
  // error.
  virtual void Reject(const std::shared_ptr<Slot>& slot, const BytePieces& message,
                      const absl::Status& why) = 0;
  // The bytes of a message that Take() has to parse, or more if the message names bytes that it has to copy.
  virtual size_t BytesToParse(const BytePieces& message) const { return message.size(); }
  // The answer's owner is released when it was sent, or cannot be. Whatever it keeps of the request counts as
  // part of the answer if `keeps_request` is true. Answers from kLargeAnswer on are charged by their owners;
  // smaller ones here if they have to wait, because hundreds may. If there is no room for one, the stream
  // ends. If there is no memory to charge it, this throws, and the request is not answered.
  void Send(const std::shared_ptr<Slot>& slot, BytePieces answer, bool keeps_request = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing more is read or sent. When all requests that were taken are answered, `end` ends the stream.
  void Stop(CallEnd end) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Action NextAction() final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeNow(const std::shared_ptr<Slot>& slot, BytePieces message);
  // Calls `take`, which takes or rejects the request. If it throws, the stream ends.
  void TakeSafely(const std::shared_ptr<Slot>& slot, absl::FunctionRef<void()> take);
  void ReadOn() ABSL_LOCKS_EXCLUDED(mutex_);
  // Refers to the slot, which is abandoned if the last copy is destroyed before the request was answered.
  std::shared_ptr<Slot> AnswererOf(const std::shared_ptr<Slot>& slot);
  // Ends the stream because of a request that will not be answered otherwise. Throws only if the call cannot
  // be ended; the stream's next event then tries again.
  void Abandon(const std::shared_ptr<Slot>& slot) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsAnswered(const Slot& slot) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the first slot and returns it; null if there is none.
  std::shared_ptr<Slot> TakeFirst() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Keeps the charge for the answer with it.
  absl::Status ChargeAnswer(BytePieces* answer) const;

  const Bounds bounds_;
  const Shared shared_;
  // Network thread only; one message comes at a time.
  int64_t next_index_ = 0;

  // In the order of the requests, without the one whose answer is being sent.
  std::deque<std::shared_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  // Number of requests for which Send() was not called yet, also of those that were dropped.
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  // Sizes of the requests and answers in `slots_`, and of the answer that is being sent.
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t sending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Set by OnShutdown().
  std::optional<CallEnd> shutdown_ ABSL_GUARDED_BY(mutex_);
  // Set by Stop().
  std::optional<CallEnd> stopped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
