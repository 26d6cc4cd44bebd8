// A daemon for tests: real gRPC on a free port of this process, answers as told, no model.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/client.h"
#include "client/types.h"

namespace saccade::client {

struct FakeRequest {
  std::string model;
  // The left one of a stereo pair.
  std::string picture;
  std::string right;
  RequestOptions request;
  // The one of the request's own task; the others are as they are by default. None repeats `request`.
  ClassifyOptions classify;
  DetectOptions detect;
  SegmentOptions segment;
  StereoOptions stereo;
};

// Thread-safe. What it answers may be changed while it runs.
class FakeDaemon {
 public:
  // Called on gRPC's threads, several at once.
  using Predict = std::function<absl::StatusOr<AnyAnswer>(const FakeRequest&)>;

  FakeDaemon();
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  // HOST:PORT.
  const std::string& url() const { return url_; }

  void SetPredict(Predict predict);
  void SetModels(std::vector<Model> models);
  // By service name; the empty one is the daemon. Wakes who watches.
  void SetHealth(const std::string& service, bool serving);
  // Makes every call but health fail with this status, its payloads sent as details and trailers.
  void FailWith(absl::Status status);
  // Returns once somebody watches a health status.
  void AwaitWatcher();

 private:
  class Services;
  struct State {
    absl::Mutex mutex;
    Predict predict ABSL_GUARDED_BY(mutex);
    std::vector<Model> models ABSL_GUARDED_BY(mutex);
    std::map<std::string, bool> health ABSL_GUARDED_BY(mutex) = {{"", true}};
    absl::Status failure ABSL_GUARDED_BY(mutex);
    int watchers ABSL_GUARDED_BY(mutex) = 0;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };

  State state_;
  std::unique_ptr<Services> services_;
  std::string url_;
};

}  // namespace saccade::client
