// A model as a call sees it. The models themselves, and how they are loaded and replaced, are in
// server/catalog.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/api/description.h"
#include "server/batching/batch_task.h"
#include "server/core/call_head.h"
#include "server/core/served_by.h"
#include "server/drift/drift_watch.h"
#include "server/engine/answer_order.h"
#include "server/metrics/metrics.h"
#include "server/repository/model_settings.h"
#include "server/shadow/shadow.h"

namespace saccade::server {

class CallShare;
class Engine;
class ShadowSender;

// One version of a model that was ready when it was found. Thread-safe.
class ReadyModel {
 public:
  ReadyModel() = default;
  ReadyModel(const ReadyModel&) = delete;
  ReadyModel& operator=(const ReadyModel&) = delete;
  virtual ~ReadyModel() = default;

  virtual const ModelSettings& settings() const = 0;
  virtual int64_t version() const = 0;
  virtual ModelMetrics* metrics() const = 0;
  // Never null. REQUIRES: the model is ready.
  virtual std::shared_ptr<const ModelIdentity> identity() const = 0;

  // The functions below REQUIRE that the model is not an ensemble.
  virtual const models::Description& description() const = 0;
  virtual const Engine& engine() const = 0;
  // Null unless answers leave in the order of their requests.
  virtual AnswerOrder* answer_order() const = 0;
  // Null unless the model's drift is watched.
  virtual DriftWatch* drift() const { return nullptr; }
  // Null unless another version computes copies of this one's requests.
  virtual std::shared_ptr<Shadow> shadow() const { return nullptr; }
  // The version that computes them. UNAVAILABLE if it is not ready, or was promoted and answers itself.
  virtual absl::StatusOr<std::shared_ptr<ReadyModel>> FindShadow() const {
    return absl::UnavailableError("the model has no shadow version");
  }
  // Null if shadow() is.
  virtual ShadowSender* shadow_sender() const { return nullptr; }
  // Whether the time for which the threads of its passes wait for a core is measured, because passes are
  // compared with those of another version.
  virtual bool times_passes() const { return false; }
  // Whether requests of this version wait for a pass.
  virtual bool has_waiting() const { return false; }
  // Returns the error with which Submit() would reject an item with these traits that belongs in one of
  // `buckets`; OK if it might be accepted. Does not block.
  virtual absl::Status Consider(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) const = 0;
  // See BatcherOptions.
  virtual int64_t MaxItemsOfRequest(int priority) const = 0;
  // Queues the share, and takes it only if it returns OK. Does not wait, but may compute a short batch on
  // this thread.
  virtual absl::Status Submit(std::unique_ptr<CallShare>& share) = 0;

  const std::string& name() const { return settings().name; }
  bool is_ensemble() const { return settings().backend == Backend::kEnsemble; }
  int max_batch_size() const { return static_cast<int>(settings().batching.max_batch_size); }
};

// Thread-safe.
class ModelFinder {
 public:
  virtual ~ModelFinder() = default;

  // Finds the requested version, or for 0 the highest that is ready. NOT_FOUND if there is none of that name;
  // UNAVAILABLE if it is not ready. The model is not freed while the caller holds it.
  virtual absl::StatusOr<std::shared_ptr<ReadyModel>> FindModel(absl::string_view name,
                                                                int64_t version) const = 0;

  // Called once, on any thread: with OK when FindModel() may find the model, or with the error that answers
  // the request.
  using Resume = absl::AnyInvocable<void(absl::Status) &&>;
  // For a request whose model FindModel() did not find ready: if requests load that model, takes `resume`,
  // calls it once the model was loaded, possibly before this returns, and returns true. Otherwise returns
  // false, also if the model has become ready since: FindModel() then finds it, or its error is final. Does
  // not block.
  virtual bool AwaitModel(const CallHead& /*call*/, Resume& /*resume*/) const { return false; }
  // For a request whose model FindModel() did not find ready and that does not wait: if requests load that
  // model, it is loaded for the next ones. Does not block.
  virtual void WantModel(const CallHead& /*call*/) const {}
};

}  // namespace saccade::server
