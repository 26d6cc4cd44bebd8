// The daemon: opens the ports, loads models, serves, drains and exits.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/attestation/attester.h"
#include "server/lifecycle/drain.h"
#include "server/lifecycle/flags.h"
#include "server/lifecycle/front/front.h"
#include "server/lifecycle/readiness.h"

namespace saccade::server {

class Admission;
class Catalog;
class Certificates;
class DecodePool;
class DecoderSetup;
class Inference;
class InferenceService;
class Metrics;
class Pipeline;
class ResponseCache;
class RestService;
class RetryJitter;
class SharedMemory;
class CaptureSetup;
class Observability;
class Tokens;
class VisionRest;
class VisionService;

// Used by the main thread only.
class Daemon {
 public:
  // Opens every port and starts to load; returns before the models are ready. Errors can be printed as they
  // are.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Flags& flags);
  ~Daemon();

  // Serves until SIGTERM or SIGINT, or until a GPU is lost, then drains (drain.h). Returns OK if no request
  // was lost; DEADLINE_EXCEEDED if draining took too long, in which case forward passes may still be running;
  // INTERNAL if a GPU is lost and the daemon has drained; another error if a model failed to load under
  // --exit-on-error, which ends a daemon that is not ready without a drain: DEADLINE_EXCEEDED if that took
  // too long.
  absl::Status Run();

 private:
  explicit Daemon(const Flags& flags);

  absl::Status OpenSecrets();
  // Reads certificates and tokens again if their files have changed.
  void ReloadChangedSecrets();
  absl::Status CreateComponents();
  // Sets the quotas that the token file has.
  void SetTokenQuotas();
  // Unregisters the shared memory of tokens that are not valid any more. Called at every look, not only after
  // a change: a call that began with a withdrawn token may register a region later.
  void ReleaseWithdrawnRegions();
  absl::Status CreateFront();
  void CreateServices();
  void RefreshGauges();
  absl::Status OpenPorts();
  std::vector<HttpRoute> HttpRoutes();
  std::vector<HttpRoute> MetricsRoutes();
  void StartLoading();
  void UpdateLiveness();
  void CountDemand();
  // Ends calls that are late or cancelled, and reads secrets that have changed. Called often.
  void Sweep();
  // Returns OK when the daemon should drain, and an error if it should end without.
  absl::Status AwaitEnd();
  // Has AwaitEnd() return OK, and Run() `failure` once the daemon has drained.
  absl::Status EndWith(absl::Status failure);
  // Makes the daemon ready without all of its models once --load-deadline-seconds have passed.
  void CheckLoadDeadline();
  DrainHooks HooksOfDrain();
  // Stops, and returns `failure`; DEADLINE_EXCEEDED if that takes too long.
  absl::Status EndWithoutDrain(absl::Status failure);
  // Writes and sends spans and captured calls for a bounded time. Called when Stop() did not come so far.
  void KeepWhatIsQueued();
  // Closes and ends everything. May be called again.
  void Stop();
  // Writes to the log if something is held of the bounds of admission.
  void CheckNothingIsHeld() const;

  const Flags flags_;
  // Cores that the daemon keeps busy.
  const int cores_;
  Readiness readiness_;
  // In order of construction; each may refer to earlier ones.
  // certificates_ is null without TLS, tokens_ without a token file.
  std::unique_ptr<Certificates> certificates_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Observability> observability_;
  std::unique_ptr<CaptureSetup> capturing_;
  // Null without --attest-key.
  std::unique_ptr<Attester> attester_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<RetryJitter> retry_jitter_;
  std::unique_ptr<Front> front_;
  // Null if no answers are cached.
  std::unique_ptr<ResponseCache> response_cache_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<DecoderSetup> decoding_;
  std::unique_ptr<DecodePool> decode_pool_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<VisionService> vision_;
  std::unique_ptr<SharedMemory> shared_memory_;
  std::unique_ptr<Inference> inference_;
  std::unique_ptr<InferenceService> inference_service_;
  std::unique_ptr<RestService> rest_;
  std::unique_ptr<VisionRest> vision_rest_;
  // True once all models to be loaded at start were tried. Used by the catalog's thread.
  bool loaded_ = false;
  std::atomic<bool> loading_failed_{false};
  // When StartLoading() was called, and whether --load-deadline-seconds have passed since.
  absl::Time load_started_ = absl::InfiniteFuture();
  bool load_deadline_passed_ = false;
  // Why the daemon drains, other than a signal.
  absl::Status failure_;
};

}  // namespace saccade::server
