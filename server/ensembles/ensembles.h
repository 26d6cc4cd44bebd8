// Calls of ensembles: checked, admitted once, run step by step, and counted like calls of a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/ensembles/ensemble_check.h"
#include "server/ensembles/ensemble_run.h"
#include "server/catalog/catalog.h"
#include "server/engine/pipeline.h"

namespace saccade::server {

// Thread-safe.
class Ensembles {
 public:
  // The arguments, and what they refer to, must outlive this object and every call. `find` describes models,
  // `infer` computes with them.
  Ensembles(Pipeline* pipeline, const Catalog* catalog, FindStep find, InferStep infer)
      : pipeline_(pipeline), catalog_(catalog), find_(std::move(find)), infer_(std::move(infer)) {}

  // Like Inference::Infer, for a call of `model`. Steps are calls of their own: they count towards the bounds
  // of their models, but towards the server's only as part of this call. REQUIRES: `model` is an ensemble.
  void Infer(const std::shared_ptr<ServedModel>& model, TensorCall call, TensorDone done) const;

  // UNAVAILABLE with the reason unless all steps can be run.
  absl::Status CheckReady(const Ensemble& ensemble) const;

 private:
  struct Pending;

  absl::StatusOr<TensorAnswer> ToAnswer(TensorAnswer answer, const Pending& pending) const;
  // The labels configured for the output, or else those of the model that makes it.
  std::vector<std::string> LabelsOf(const Ensemble& ensemble, const std::string& output) const;

  Pipeline* const pipeline_;
  const Catalog* const catalog_;
  const FindStep find_;
  const InferStep infer_;
};

}  // namespace saccade::server
