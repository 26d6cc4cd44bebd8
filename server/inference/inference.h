// Calls that name tensors, whichever protocol brought them, on their way to what computes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/tensor_call.h"
#include "server/inference/ensembles.h"
#include "server/inference/model_interface.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/pipeline.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Thread-safe.
class Inference {
 public:
  // All must outlive it and every call. `ensembles`, if there is one, is told how to check them: before it
  // lives, none can be loaded.
  Inference(Pipeline* pipeline, const Catalog* catalog, const SharedMemory* shared_memory,
            EnsembleRunner* ensembles = nullptr);
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  // Never blocks; every call is counted in the metrics. What the inputs' bytes lie in must live until `done`
  // is called, and as long as the answer if their owner is null. Outputs that are wanted in shared memory
  // have been written there when `done` is called.
  void Infer(TensorCall call, TensorDone done);

  // ModelTable::VersionOf.
  absl::StatusOr<int64_t> VersionOf(absl::string_view model, absl::string_view version) const {
    return catalog_->VersionOf(model, version);
  }

  // OK if a call would find the model ready, and of an ensemble all its steps' models.
  absl::Status CheckReady(absl::string_view model, int64_t version) const;

  // NOT_FOUND or UNAVAILABLE unless the model is ready.
  absl::StatusOr<ModelInterface> Describe(absl::string_view model, int64_t version) const;

 private:
  void Compute(std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done);
  // Answers with what was kept of an equal request, or computes and keeps it.
  void InferCached(std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done);
  // Ready, its steps' models too.
  absl::StatusOr<std::shared_ptr<ServedModel>> FindReady(absl::string_view model, int64_t version) const;
  absl::StatusOr<StepModel> FindStepModel(const std::string& model, int64_t version) const;

  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  const SharedMemory* const shared_memory_;
  const Ensembles ensembles_;
};

}  // namespace saccade::server
