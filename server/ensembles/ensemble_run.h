// Runs one request through an ensemble.
//
// A step starts as soon as its inputs are available. Independent steps run concurrently; steps whose outputs
// the request does not need are not run. Tensors are passed between steps by reference and released when the
// last step that uses them has ended.
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
#include "server/core/starting_threads.h"
#include "server/core/tensor_call.h"
#include "server/ensembles/ensemble_plan.h"

namespace saccade::server {

// Computes a step; like Inference::Infer.
using InferStep = std::function<void(TensorCall, TensorDone)>;

// Thread-safe.
class EnsembleRun : public std::enable_shared_from_this<EnsembleRun> {
 public:
  // The plan, the clock and what `infer` refers to must outlive the run.
  struct Deps {
    const EnsemblePlan* plan;
    InferStep infer;
    Clock* clock;
  };

  // Starts the run. The answer has the outputs that the request wants, in the ensemble's order; the caller
  // sets its model and version and applies classification. `done` is called when no step runs any more; the
  // memory that the inputs refer to is not used afterwards. REQUIRES: CheckRequest() accepted `call`.
  //
  // The first step that fails ends the run: steps that have not started are skipped, running ones are
  // cancelled. The answer is that step's error, prefixed with the step's name; NOT_FOUND becomes UNAVAILABLE,
  // because the model existed when the ensemble was checked, and an error that HasWrongValues() becomes
  // INTERNAL if another step made the values.
  static void Start(Deps deps, TensorCall call, TensorDone done);

 private:
  // A tensor, held while it is still needed.
  struct Slot {
    // How many more times it is taken, by steps and by the answer.
    int takers = 0;
    std::optional<Tensor> tensor;
    // TensorAnswer::charge of the step's answer.
    std::shared_ptr<const AnswerCharge> charge = nullptr;
  };
  struct StepState {
    bool needed = false;
    int missing_inputs = 0;
    bool ended = false;
  };

  EnsembleRun(Deps deps, TensorCall call, TensorDone done);

  void FindNeeded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BringInputs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts the ready steps one after the other on this thread, unless a call of Advance() below is doing so
  // on it (StartingThreads). None of them waits for another's pass, even if a pass is short enough to be
  // computed here. Finishes the run if no step is left.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts a ready step, which fails if that throws. False if there is none. Does not throw.
  bool StartNext() ABSL_LOCKS_EXCLUDED(mutex_);
  TensorCall CallOf(size_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Tensor Take(size_t tensor, const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first call for a step counts.
  void Ended(size_t step, absl::StatusOr<TensorAnswer> answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // For a step that will not be answered otherwise. Does not throw.
  void EndUnanswered(size_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps the outputs, or returns the step's error, prefixed with its name.
  absl::Status Result(size_t step, absl::StatusOr<TensorAnswer> answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another step makes an input of this one.
  bool HasMadeInput(size_t step) const;
  absl::Status Keep(size_t step, TensorAnswer answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Wants(const std::string& output) const;
  TensorAnswer MakeAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  const Deps deps_;
  const EnsemblePlan& plan_;
  // Without its inputs.
  TensorCall call_;
  TensorDone done_;
  // Parent of all steps' cancellations, and cancelled with the client's.
  const std::shared_ptr<Cancellation> cancellation_;

  absl::Mutex mutex_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<StepState> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> ready_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  StartingThreads starting_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Timings timings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
