// Calls of ensembles: checked, admitted once, run step by step, and counted like calls of a model. The models
// of the steps are found and computed by functions, so that this does not depend on the catalog.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"
#include "server/engine/pipeline.h"
#include "server/engine/ready_model.h"
#include "server/ensembles/ensemble_check.h"
#include "server/ensembles/ensemble_run.h"

namespace saccade::server {

// Thread-safe.
class Ensembles {
 public:
  // `pipeline`, and what the functions refer to, must outlive this object and every call. `find` describes
  // models, `infer` computes with them.
  Ensembles(Pipeline* pipeline, FindStep find, InferStep infer)
      : pipeline_(pipeline), find_(std::move(find)), infer_(std::move(infer)) {}

  // Like Inference::Infer, for a call of `model`, which is `ensemble`. Steps are calls of their own: they
  // count towards the bounds of their models, but towards the server's only as part of this call.
  void Infer(std::shared_ptr<const ReadyModel> model, std::shared_ptr<const Ensemble> ensemble,
             TensorCall call, TensorDone done) const;

  // UNAVAILABLE with the reason unless all steps can be run.
  absl::Status CheckReady(const Ensemble& ensemble) const { return CheckRunnable(ensemble, find_); }

 private:
  struct Pending;

  // Computes a step, with a batch of one if the step's model has a batch dimension.
  InferStep WithBatchOfOne() const;
  absl::StatusOr<TensorAnswer> ToAnswer(TensorAnswer answer, const Pending& pending) const;
  // The labels configured for the output, or else for the output of the step that makes it.
  std::vector<std::string> LabelsOf(const Ensemble& ensemble, const std::string& output) const;

  Pipeline* const pipeline_;
  const FindStep find_;
  const InferStep infer_;
};

}  // namespace saccade::server
