// A daemon for tests: a real gRPC server on a free port of this process with configured responses and no
// model.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/types.h"

namespace grpc {
class ServerCredentials;
}

namespace saccade::client {

struct FakeRequest {
  std::string model;
  // The left picture of a stereo pair.
  std::string picture;
  std::string right;
  // Frames of a clip; empty if the clip is a video, which is in `picture`.
  std::vector<std::string> frames;
  double frames_per_second = 0;
  // For a volume, whose bytes are in `picture`: the announced shape and size, and the sizes of the parts
  // received.
  std::optional<VolumeShape> raw;
  int64_t announced_bytes = 0;
  std::vector<size_t> part_bytes;
  // Timeout of a stream item.
  std::optional<absl::Duration> timeout;
  RequestOptions request;
  // Options of the request's task; the others keep their defaults. Their own `request` is not set.
  ClassifyOptions classify;
  DetectOptions detect;
  SegmentOptions segment;
  StereoOptions stereo;
  ActionOptions actions;
  RestoreOptions restore;
};

// How a Restore behaves, apart from the response that SetPredict's function returns.
struct FakeRestore {
  // Progress values sent before the response.
  std::vector<double> progress = {0, 0.5, 1};
  // Maximum bytes of voxels per message.
  size_t part_bytes = 1 << 20;
  // If not OK, the stream ends with this status after the header, whatever the client still sends.
  absl::Status early = {};
  // Sends progress until the client disconnects.
  bool endless = false;
};

// Thread-safe. Responses may be changed while it runs.
class FakeDaemon {
 public:
  // Called on gRPC's threads, several at once; for a Restore, once all parts have been received. The shape of
  // a Restoration is what the daemon announces; its voxels are sent unchanged, even if their number does not
  // match the shape.
  using Predict = std::function<absl::StatusOr<AnyAnswer>(const FakeRequest&)>;

  using Statistics = std::function<absl::StatusOr<std::vector<ModelStatistics>>()>;

  FakeDaemon();
  // Uses TLS with these credentials.
  explicit FakeDaemon(std::shared_ptr<grpc::ServerCredentials> credentials);
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  // HOST:PORT.
  const std::string& url() const { return url_; }

  void SetPredict(Predict predict);
  void SetRestore(FakeRestore restore);
  // After this many requests a stream ends with `status`, whatever the client still sends.
  void EndStreamsAfter(int requests, absl::Status status);
  void SetModels(std::vector<Model> models);
  // Sets the health of a service; the empty name is the daemon. Wakes the watchers.
  void SetHealth(const std::string& service, bool serving);
  // Makes every call except health fail with this status; its payloads are sent as details and trailers.
  void FailWith(absl::Status status);
  // Makes every health call fail with this status.
  void FailHealthWith(absl::Status status);
  // Every call without this `authorization` value fails with UNAUTHENTICATED.
  void RequireAuthorization(std::string authorization);
  // Called for each ModelStatistics request; without it, the response is UNIMPLEMENTED.
  void SetStatistics(Statistics statistics);
  // Number of Restore calls received.
  int restores();
  // Blocks until a client watches a health status.
  void AwaitWatcher();

 private:
  class Services;
  struct State {
    absl::Mutex mutex;
    Predict predict ABSL_GUARDED_BY(mutex);
    FakeRestore restore ABSL_GUARDED_BY(mutex);
    int max_streamed ABSL_GUARDED_BY(mutex) = std::numeric_limits<int>::max();
    absl::Status stream_end ABSL_GUARDED_BY(mutex);
    std::vector<Model> models ABSL_GUARDED_BY(mutex);
    std::map<std::string, bool> health ABSL_GUARDED_BY(mutex) = {{"", true}};
    absl::Status failure ABSL_GUARDED_BY(mutex);
    absl::Status health_failure ABSL_GUARDED_BY(mutex);
    std::string authorization ABSL_GUARDED_BY(mutex);
    Statistics statistics ABSL_GUARDED_BY(mutex);
    int restores ABSL_GUARDED_BY(mutex) = 0;
    int watchers ABSL_GUARDED_BY(mutex) = 0;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };

  State state_;
  std::unique_ptr<Services> services_;
  std::string url_;
};

}  // namespace saccade::client
