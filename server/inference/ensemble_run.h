// One request's way through an ensemble.
//
// A step starts as soon as its inputs are there; those that do not wait for each other run at the same time,
// and those whose results the request does not want do not run at all. Tensors go from step to step by
// reference, and are let go when the last step that takes them has ended.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/core/clock.h"
#include "server/core/tensor_call.h"
#include "server/pipeline/ensemble_plan.h"

namespace saccade::server {

// Computes a step; as Inference::Infer.
using InferStep = std::function<void(TensorCall, TensorDone)>;

// Thread-safe.
class EnsembleRun : public std::enable_shared_from_this<EnsembleRun> {
 public:
  // The plan, the clock and what `infer` refers to must outlive the run.
  struct Rooms {
    const EnsemblePlan* plan;
    InferStep infer;
    Clock* clock;
  };

  // REQUIRES: CheckRequest took `call`. The outputs of the answer are those that it wants, in the ensemble's
  // order; model, version and classification are the caller's business. `done` is called when no step runs
  // any more: what the inputs lie in is not needed then.
  //
  // The first step that fails ends the run: what has not started does not, what runs is cancelled. Its error
  // is the answer, with the step's name before the message; a model that has gone meanwhile is UNAVAILABLE.
  static void Start(Rooms rooms, TensorCall call, TensorDone done);

 private:
  // A tensor while somebody needs it.
  struct Slot {
    // How many steps, and the answer, will take it.
    int takers = 0;
    std::optional<Tensor> tensor;
    // TensorAnswer::room of the answer that it came with.
    std::shared_ptr<const void> room = nullptr;
  };
  struct StepState {
    bool needed = false;
    int missing = 0;
  };

  EnsembleRun(Rooms rooms, TensorCall call, TensorDone done);

  void FindNeeded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BringInputs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts what is ready, one after the other, on this thread, unless another is at it: what ends while it
  // starts goes on here, so that no chain of short steps fills the stack. Finishes the run if that is all.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  TensorCall CallOf(size_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Tensor Take(size_t tensor, const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ended(size_t step, absl::StatusOr<TensorAnswer> answer) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Keep(size_t step, TensorAnswer answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Wants(const std::string& output) const;
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  const Rooms rooms_;
  const EnsemblePlan& plan_;
  // Without its inputs.
  TensorCall call_;
  TensorDone done_;
  // Of all steps; raised with the client's.
  const std::shared_ptr<Cancellation> cancellation_;

  absl::Mutex mutex_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<StepState> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> ready_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool advancing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Timings timings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
