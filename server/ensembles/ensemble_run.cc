#include "server/ensembles/ensemble_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/core/inline_passes.h"
#include "server/core/wrong_values.h"
#include "server/engine/answer_charge.h"
#include "server/ensembles/step_error.h"
#include "server/tracing/call_record.h"

namespace saccade::server {

void EnsembleRun::Start(Deps deps, TensorCall call, TensorDone done) {
  const std::shared_ptr<EnsembleRun> run(new EnsembleRun(std::move(deps), std::move(call), std::move(done)));
  {
    absl::MutexLock lock(&run->mutex_);
    run->FindNeeded();
    run->BringInputs();
  }
  run->Advance();
}

EnsembleRun::EnsembleRun(Deps deps, TensorCall call, TensorDone done)
    : deps_(std::move(deps)),
      plan_(*deps_.plan),
      call_(std::move(call)),
      done_(std::move(done)),
      cancellation_(std::make_shared<Cancellation>(call_.cancellation)),
      slots_(plan_.tensors.size()),
      steps_(plan_.steps.size()) {}

bool EnsembleRun::Wants(const std::string& output) const {
  const auto has_name = [&output](const WantedOutput& wanted) { return wanted.name == output; };
  return call_.outputs.empty() || std::any_of(call_.outputs.begin(), call_.outputs.end(), has_name);
}

void EnsembleRun::FindNeeded() {
  for (const size_t output : plan_.outputs)
    slots_[output].takers += Wants(plan_.tensors[output].name) ? 1 : 0;
  // Steps that use a step's outputs come after it in the plan.
  for (size_t i = plan_.steps.size(); i-- > 0;) {
    const EnsemblePlan::Step& step = plan_.steps[i];
    const auto is_taken = [this](const EnsemblePlan::Port& port) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return slots_[port.tensor].takers > 0;
    };
    steps_[i].needed = std::any_of(step.outputs.begin(), step.outputs.end(), is_taken);
    if (!steps_[i].needed) continue;
    for (const EnsemblePlan::Port& port : step.inputs) {
      ++slots_[port.tensor].takers;
      if (plan_.tensors[port.tensor].maker) ++steps_[i].missing_inputs;
    }
  }
}

void EnsembleRun::BringInputs() {
  for (Tensor& input : std::exchange(call_.inputs, {})) {
    const auto has_name = [&](size_t number) { return plan_.tensors[number].name == input.name; };
    const auto found = std::find_if(plan_.inputs.begin(), plan_.inputs.end(), has_name);
    // CheckRequest() accepted the names, so the input was found.
    if (slots_[*found].takers > 0) slots_[*found].tensor = std::move(input);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].needed && steps_[i].missing_inputs == 0) ready_.push_back(i);
  }
}

void EnsembleRun::Advance() {
  {
    const absl::MutexLock lock(&mutex_);
    if (!starting_.Enter()) return;
  }
  while (StartNext()) {
  }
  bool finished = false;
  {
    const absl::MutexLock lock(&mutex_);
    starting_.Leave();
    // Several threads come here after the last steps: only the first of them finishes the run. The thread
    // that has made a step ready since then starts it.
    finished = running_ == 0 && ready_.empty() && !std::exchange(finished_, true);
  }
  if (finished) Finish();
}

bool EnsembleRun::StartNext() {
  size_t step = 0;
  bool last = false;
  {
    const absl::MutexLock lock(&mutex_);
    if (ready_.empty()) return false;
    step = ready_.front();
    ready_.erase(ready_.begin());
    ++running_;
    last = ready_.empty();
  }
  try {
    // Fails the step if its model forgets it, or if this function throws.
    const std::shared_ptr<const void> answerer(
        nullptr, [run = shared_from_this(), step](const void*) { run->EndUnanswered(step); });
    const LimitInlinePasses limit(last ? InlinePasses::kOwn : InlinePasses::kNone);
    TensorCall call;
    {
      const absl::MutexLock lock(&mutex_);
      call = CallOf(step);
    }
    const std::shared_ptr<CallRecord> record = call.record;
    deps_.infer(std::move(call),
                [run = shared_from_this(), step, record, answerer](absl::StatusOr<TensorAnswer> answer) {
                  if (record != nullptr) record->End({.status = answer.status()});
                  run->Ended(step, std::move(answer));
                });
  } catch (...) {
    // `answerer` tells the client.
  }
  return true;
}

void EnsembleRun::EndUnanswered(size_t step) {
  {
    const absl::MutexLock lock(&mutex_);
    if (steps_[step].ended) return;
  }
  try {
    Ended(step, absl::InternalError("the server dropped the request because of an error of its own"));
  } catch (...) {
    // The client is told when the run is destroyed with its last step.
  }
}

TensorCall EnsembleRun::CallOf(size_t step) {
  const EnsemblePlan::Step& described = plan_.steps[step];
  TensorCall call;
  static_cast<CallHead&>(call) = call_;
  call.model = described.model;
  call.version = described.version;
  call.arrival = deps_.clock->Now();
  call.cancellation = std::make_shared<Cancellation>(cancellation_);
  call.nested = true;
  if (call.record != nullptr) {
    call.record = call.record->Step(call.arrival);
    call.record->Describe(call);
  }
  for (const EnsemblePlan::Port& port : described.inputs) {
    // An optional input that the request left out.
    if (!slots_[port.tensor].tensor) continue;
    call.inputs.push_back(Take(port.tensor, port.name));
  }
  for (const EnsemblePlan::Port& port : described.outputs) {
    if (slots_[port.tensor].takers > 0) call.outputs.push_back({.name = port.name});
  }
  return call;
}

Tensor EnsembleRun::Take(size_t tensor, const std::string& name) {
  Slot& slot = slots_[tensor];
  Tensor taken;
  if (--slot.takers == 0) {
    taken = *std::exchange(slot.tensor, std::nullopt);
  } else {
    taken = *slot.tensor;
  }
  taken.name = name;
  return taken;
}

void EnsembleRun::Ended(size_t step, absl::StatusOr<TensorAnswer> answer) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(steps_[step].ended, true)) return;
    --running_;
    if (failure_.ok()) {
      failure_ = Result(step, std::move(answer));
      if (!failure_.ok()) {
        cancellation_->Cancel();
        ready_.clear();
      }
    }
  }
  Advance();
}

absl::Status EnsembleRun::Result(size_t step, absl::StatusOr<TensorAnswer> answer) {
  try {
    absl::Status kept = answer.ok() ? Keep(step, *std::move(answer)) : answer.status();
    // The client cannot mend values that another step made.
    if (HasWrongValues(kept) && HasMadeInput(step)) kept = absl::InternalError(kept.message());
    return kept.ok() ? kept : WithStepName(kept, NameOf(plan_, step));
  } catch (...) {
    return ErrorOfException();
  }
}

bool EnsembleRun::HasMadeInput(size_t step) const {
  const std::vector<EnsemblePlan::Port>& inputs = plan_.steps[step].inputs;
  return std::any_of(inputs.begin(), inputs.end(), [this](const EnsemblePlan::Port& port) {
    return plan_.tensors[port.tensor].maker.has_value();
  });
}

absl::Status EnsembleRun::Keep(size_t step, TensorAnswer answer) {
  timings_.decode += answer.timings.decode;
  timings_.queue += answer.timings.queue;
  timings_.infer += answer.timings.infer;
  timings_.encode += answer.timings.encode;
  for (const EnsemblePlan::Port& port : plan_.steps[step].outputs) {
    Slot& slot = slots_[port.tensor];
    if (slot.takers == 0) continue;
    const auto has_name = [&port](const Tensor& tensor) { return tensor.name == port.name; };
    const auto found = std::find_if(answer.outputs.begin(), answer.outputs.end(), has_name);
    if (found == answer.outputs.end()) {
      return absl::InternalError(absl::StrCat("the model did not answer with its output '", port.name, "'"));
    }
    slot.tensor = std::move(*found);
    slot.charge = answer.charge;
    for (const size_t taker : plan_.tensors[port.tensor].takers) {
      StepState& state = steps_[taker];
      if (state.needed && --state.missing_inputs == 0) ready_.push_back(taker);
    }
  }
  return absl::OkStatus();
}

TensorAnswer EnsembleRun::MakeAnswer() {
  TensorAnswer answer;
  answer.timings = timings_;
  std::vector<std::shared_ptr<const AnswerCharge>> charges;
  for (const size_t output : plan_.outputs) {
    const std::string& name = plan_.tensors[output].name;
    if (!Wants(name)) continue;
    answer.outputs.push_back(Take(output, name));
    charges.push_back(slots_[output].charge);
  }
  answer.charge = std::make_shared<AnswerCharge>(std::move(charges));
  return answer;
}

void EnsembleRun::Finish() {
  absl::StatusOr<TensorAnswer> outcome;
  {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) {
      try {
        outcome = MakeAnswer();
      } catch (...) {
        outcome = ErrorOfException();
      }
    } else {
      outcome = failure_;
    }
    // Releases the tensors that were not taken because of a failure.
    slots_.clear();
  }
  std::move(done_)(std::move(outcome));
}

}  // namespace saccade::server
