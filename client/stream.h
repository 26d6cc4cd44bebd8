// Many pictures over one PredictStream: sent as fast as the daemon takes them, answered in their order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/types.h"

namespace saccade::client {

struct ClassifyOptions;
struct DetectOptions;
struct SegmentOptions;
struct StereoOptions;
struct ActionOptions;

struct StreamOptions {
  // Of the whole stream.
  absl::Duration timeout = absl::InfiniteDuration();
  // Of each item, from the moment when the daemon reads it.
  absl::Duration item_timeout = absl::InfiniteDuration();
};

struct StreamItem {
  // Which of those that were sent it answers, from 0.
  int64_t index = 0;
  std::string request_id;
  // An error is this item's alone: of the daemon's canonical codes, and RetryAfter() as of a call.
  absl::StatusOr<AnyAnswer> answer;
};

// Made by Client::OpenStream, which has to outlive it. One thread may send while another receives; each side
// is one thread's at a time.
//
// The daemon reads only so many requests ahead of the answers that it has sent, and Send blocks then. So
// whoever sends more than a few has to call Next on another thread meanwhile, or in between: never more
// unanswered than the daemon's --max-stream-requests (64, unless it is told otherwise).
class Stream {
 public:
  // Cancels what is not answered yet.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // As the client's calls of these names; they return once the request is on its way. UNAVAILABLE if the
  // stream has ended: Next tells why. RESOURCE_EXHAUSTED, and the stream goes on, if the request is larger
  // than a message.
  absl::Status Classify(absl::string_view model, absl::string_view picture, const ClassifyOptions& options);
  absl::Status Detect(absl::string_view model, absl::string_view picture, const DetectOptions& options);
  absl::Status Segment(absl::string_view model, absl::string_view picture, const SegmentOptions& options);
  absl::Status Stereo(absl::string_view model, absl::string_view left, absl::string_view right,
                      const StereoOptions& options);
  absl::Status Localize(absl::string_view model, absl::string_view video, const ActionOptions& options);

  // Nothing more will be sent; the answers still come.
  void SendDone();

  // Blocks until the next item is answered. Nothing after the last one, once SendDone was called; an error if
  // the stream broke, or ended before everything was answered, with the daemon's code.
  absl::StatusOr<std::optional<StreamItem>> Next();

  // Thread-safe. Gives up all that is not answered; Next then ends with CANCELLED.
  void Cancel();

 private:
  friend class Client;
  class Call;
  explicit Stream(std::unique_ptr<Call> call);

  const std::unique_ptr<Call> call_;
};

}  // namespace saccade::client
