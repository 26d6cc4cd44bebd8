// The client's side of one PredictStream: messages out, answers in, and when each was sent.
#pragma once

#include <grpcpp/client_context.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/stream.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {

// As Stream says of its threads.
class Stream::Call {
 public:
  struct Options {
    StreamOptions stream;
    int64_t max_message_bytes = 0;
    // Adds what every call of its client carries.
    std::function<void(grpc::ClientContext&)> authorize;
    // What the end of a call is to its client.
    std::function<absl::Status(const grpc::Status&, const grpc::ClientContext&)> explain;
  };

  // Starts it. `stub` must outlive it.
  Call(Options options, v1::Vision::Stub& stub);
  ~Call();

  // `start` is from before the request was made.
  absl::Status Send(v1::PredictRequest request, absl::Time start);
  void SendDone();
  absl::StatusOr<std::optional<StreamItem>> Next();
  void Cancel() { context_.TryCancel(); }

 private:
  absl::StatusOr<StreamItem> Read(const v1::PredictStreamResponse& message);
  absl::Status End();

  const Options options_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::PredictStreamRequest, v1::PredictStreamResponse>> stream_;

  // Of the receiving thread.
  int64_t next_index_ = 0;
  std::optional<absl::Status> end_;

  absl::Mutex mutex_;
  // When those that are not answered were sent, in their order.
  std::deque<absl::Time> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::client
