// A daemon for tests: real gRPC on a free port of this process, answers as told, no model.
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
#include "client/client.h"
#include "client/types.h"

namespace grpc {
class ServerCredentials;
}

namespace saccade::client {

struct FakeRequest {
  std::string model;
  // The left one of a stereo pair.
  std::string picture;
  std::string right;
  // Of a clip: a whole video as `picture`, or these.
  std::vector<std::string> frames;
  double frames_per_second = 0;
  // Of a volume, which is `picture`: how it was announced, and in parts of how many bytes it came.
  std::optional<VolumeShape> raw;
  int64_t announced_bytes = 0;
  std::vector<size_t> part_bytes;
  // Of an item of a stream.
  std::optional<absl::Duration> timeout;
  RequestOptions request;
  // The one of the request's own task; the others are as they are by default. None repeats `request`.
  ClassifyOptions classify;
  DetectOptions detect;
  SegmentOptions segment;
  StereoOptions stereo;
  ActionOptions actions;
  RestoreOptions restore;
};

// How a Restore goes beside what SetPredict's function answers to it.
struct FakeRestore {
  // Told before the answer.
  std::vector<double> progress = {0, 0.5, 1};
  // How many bytes of voxels a message has.
  size_t part_bytes = 1 << 20;
  // If set, the stream ends so after the header was read, whatever the client still sends.
  absl::Status early = {};
  // Tells progress until the client has gone.
  bool endless = false;
};

// Thread-safe. What it answers may be changed while it runs.
class FakeDaemon {
 public:
  // Called on gRPC's threads, several at once; for a Restore once all its parts are there. A Restoration's
  // shape is what it announces; its voxels are sent as they are, be they as many or not.
  using Predict = std::function<absl::StatusOr<AnyAnswer>(const FakeRequest&)>;

  using Statistics = std::function<absl::StatusOr<std::vector<ModelStatistics>>()>;

  FakeDaemon();
  // Over TLS, as these say.
  explicit FakeDaemon(std::shared_ptr<grpc::ServerCredentials> credentials);
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  // HOST:PORT.
  const std::string& url() const { return url_; }

  void SetPredict(Predict predict);
  void SetRestore(FakeRestore restore);
  // Streams end so after this many of their requests, whatever the client still sends.
  void EndStreamsAfter(int requests, absl::Status status);
  void SetModels(std::vector<Model> models);
  // By service name; the empty one is the daemon. Wakes who watches.
  void SetHealth(const std::string& service, bool serving);
  // Makes every call but health fail with this status, its payloads sent as details and trailers.
  void FailWith(absl::Status status);
  // Every call is UNAUTHENTICATED without this value of `authorization`.
  void RequireAuthorization(std::string authorization);
  // What ModelStatistics answers; without it, UNIMPLEMENTED. Called for each.
  void SetStatistics(Statistics statistics);
  // How many calls of Restore came.
  int restores();
  // Returns once somebody watches a health status.
  void AwaitWatcher();

 private:
  class Services;
  struct State {
    absl::Mutex mutex;
    Predict predict ABSL_GUARDED_BY(mutex);
    FakeRestore restore ABSL_GUARDED_BY(mutex);
    int most_streamed ABSL_GUARDED_BY(mutex) = std::numeric_limits<int>::max();
    absl::Status stream_end ABSL_GUARDED_BY(mutex);
    std::vector<Model> models ABSL_GUARDED_BY(mutex);
    std::map<std::string, bool> health ABSL_GUARDED_BY(mutex) = {{"", true}};
    absl::Status failure ABSL_GUARDED_BY(mutex);
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
