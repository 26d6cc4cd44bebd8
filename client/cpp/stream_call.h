// The client's side of one PredictStream: sends requests, receives responses, and records when each request
// was sent.
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
#include "client/cpp/stream.h"
#include "saccade/v1/vision.grpc.pb.h"

namespace saccade::client {

// Threading rules are those of Stream.
class Stream::Call {
 public:
  struct Options {
    StreamOptions stream;
    int64_t max_message_bytes = 0;
    // Adds the metadata that every call of the client carries.
    std::function<void(grpc::ClientContext&)> authorize;
    // Converts the final status of the call to the client's error.
    std::function<absl::Status(const grpc::Status&, const grpc::ClientContext&)> explain;
  };

  // Starts the call. `stub` must outlive it.
  Call(Options options, v1::Vision::Stub& stub);
  ~Call();

  // `start` is the time before the request was built.
  absl::Status Send(v1::PredictRequest request, absl::Time start);
  void SendDone();
  absl::StatusOr<std::optional<StreamItem>> Next();
  void Cancel() { context_.TryCancel(); }

 private:
  // A request that is not answered yet.
  struct Sent {
    absl::Time start;
    // Asks for a depth map: the daemon answers with a message that disparities have, too.
    bool is_depth = false;
  };

  absl::StatusOr<StreamItem> Read(const v1::PredictStreamResponse& message);
  absl::Status End();

  const Options options_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::PredictStreamRequest, v1::PredictStreamResponse>> stream_;

  // Used by the receiving thread only.
  int64_t next_index_ = 0;
  std::optional<absl::Status> end_;

  absl::Mutex mutex_;
  // The unanswered requests, in order.
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::client
