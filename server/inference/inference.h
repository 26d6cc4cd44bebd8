// Calls that name tensors, from any protocol, on their way to the pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/catalog/catalog.h"
#include "server/core/model_interface.h"
#include "server/core/tensor_call.h"
#include "server/engine/pipeline.h"
#include "server/ensembles/ensembles.h"
#include "server/inference/cached_inference.h"
#include "server/inference/status_codes.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Checks that the models of the catalog can run the ensemble's steps; an EnsembleChecker.
absl::Status CheckSteps(const Ensemble& ensemble, const Catalog& catalog);

// Thread-safe.
class Inference {
 public:
  // All pointers must outlive this object and every call.
  Inference(Pipeline* pipeline, const Catalog* catalog, const SharedMemory* shared_memory, StatusCodes codes);
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  // Does not block, but may compute a short batch on this thread (Pipeline::Predict). A call whose model has
  // to be loaded first waits for that. Every call is counted in
  // the metrics. The memory that the inputs refer to must stay valid until `done` is called, and, if it has
  // no owner, as long as the answer. Outputs wanted in shared memory have been written there when `done` is
  // called.
  void Infer(TensorCall call, TensorDone done);

  // Ends calls that wait for equal ones and are cancelled or late. Call it periodically.
  void Sweep() { cached_.Sweep(); }

  const StatusCodes& codes() const { return codes_; }

  // See ModelTable::VersionOf.
  absl::StatusOr<int64_t> VersionOf(absl::string_view model, absl::string_view version) const {
    return catalog_->VersionOf(model, version);
  }

  // OK if a call would find the model ready; for an ensemble, also the models of its steps.
  absl::Status CheckReady(absl::string_view model, int64_t version) const;

  // Describes the version, or for 0 the highest that is ready, and then lists all versions that are served.
  // NOT_FOUND or UNAVAILABLE unless the model is ready.
  absl::StatusOr<ModelInterface> Describe(absl::string_view model, int64_t version) const;

 private:
  // Infer() with a model that was found, or the error of looking for it.
  void InferOn(absl::StatusOr<std::shared_ptr<ServedModel>> model, TensorCall call, TensorDone done);
  // Calls `keep` with the answer before outputs are cut from it, unless it is null. A call without a ticket
  // is admitted first, and one without a turn takes the next if the model keeps the order of answers.
  void Compute(std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done,
               CachedInference::Keep keep, std::shared_ptr<Admission::Ticket> ticket,
               std::optional<AnswerOrder::Turn> turn);
  // Finds a ready model; for an ensemble, the models of its steps must be ready too.
  absl::StatusOr<std::shared_ptr<ServedModel>> FindReady(absl::string_view model, int64_t version) const;

  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  const SharedMemory* const shared_memory_;
  const StatusCodes codes_;
  const Ensembles ensembles_;
  CachedInference cached_;
};

}  // namespace saccade::server
