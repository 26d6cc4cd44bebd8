// Many pictures over one PredictStream: sent as fast as the daemon reads them, answered in order.
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
#include "client/cpp/types.h"

namespace saccade::client {

struct ClassifyOptions;
struct DetectOptions;
struct SegmentOptions;
struct StereoOptions;
struct DepthOptions;
struct EmbedOptions;
struct ActionOptions;

struct StreamOptions {
  // Timeout of the whole stream.
  absl::Duration timeout = absl::InfiniteDuration();
  // Timeout of each item, from when the daemon reads it.
  absl::Duration item_timeout = absl::InfiniteDuration();
};

struct StreamItem {
  // Index of the request that this answers, from 0.
  int64_t index = 0;
  std::string request_id;
  // An error concerns this item only. It has a canonical code of the daemon, and RetryAfter() as for a call.
  absl::StatusOr<AnyAnswer> answer;
};

// Created by Client::OpenStream; the client must outlive it. One thread may send while another receives; no
// two threads may send, or receive, at once.
//
// The daemon reads only a bounded number of requests ahead of the responses that it has sent; beyond it,
// Send blocks. To send many requests, call Next on another thread meanwhile, or in between, so that never
// more than the daemon's --max-stream-requests (64 by default) are unanswered.
class Stream {
 public:
  // Cancels the requests that are not answered yet.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Like the calls of the same names of Client, but return once the request is written. Block while the
  // daemon does not read. UNAVAILABLE if the stream has ended: Next returns the reason. RESOURCE_EXHAUSTED if
  // the request is larger than a message; the stream stays usable.
  absl::Status Classify(absl::string_view model, absl::string_view picture, const ClassifyOptions& options);
  absl::Status Detect(absl::string_view model, absl::string_view picture, const DetectOptions& options);
  absl::Status Segment(absl::string_view model, absl::string_view picture, const SegmentOptions& options);
  absl::Status Stereo(absl::string_view model, absl::string_view left, absl::string_view right,
                      const StereoOptions& options);
  absl::Status Depth(absl::string_view model, absl::string_view picture, const DepthOptions& options);
  absl::Status Embed(absl::string_view model, absl::string_view picture, const EmbedOptions& options);
  absl::Status Actions(absl::string_view model, absl::string_view video, const ActionOptions& options);

  // Ends the sending side. Responses can still be received.
  void SendDone();

  // Blocks until the next item is answered. Empty after the last item once SendDone was called. An error,
  // with the daemon's code, if the stream broke or ended before all requests were answered.
  absl::StatusOr<std::optional<StreamItem>> Next();

  // Thread-safe. Cancels all unanswered requests; Next then ends with CANCELLED.
  void Cancel();

 private:
  friend class Client;
  class Call;
  explicit Stream(std::unique_ptr<Call> call);

  const std::unique_ptr<Call> call_;
};

}  // namespace saccade::client
