#include "server/ensembles/ensembles.h"

#include <algorithm>
#include <utility>

#include "server/core/classification.h"
#include "server/core/shed_reason.h"
#include "server/engine/counted_call.h"
#include "server/engine/named_tensors.h"
#include "server/ensembles/ensemble_request.h"

namespace saccade::server {

// A call whose steps are running.
struct Ensembles::Pending {
  // Held while the steps run.
  std::shared_ptr<const ReadyModel> model;
  std::shared_ptr<const Ensemble> ensemble;
  CountedCall counted;
  std::vector<WantedOutput> wanted;
  int64_t items = 0;
  TensorDone done;
};

namespace {

// Gives the inputs the shapes that the steps take. REQUIRES: CheckRequest() returned OK.
void ReshapeInputs(TensorCall& call, const ModelSettings& settings) {
  for (Tensor& input : call.inputs) {
    const auto declares = [&](const TensorSpec& spec) { return spec.name == input.name; };
    const auto spec = std::find_if(settings.inputs.begin(), settings.inputs.end(), declares);
    input.shape = ToProgram(*spec, settings.has_batch_dimension, input.shape);
  }
}

// Turns a step's output into what clients get. INTERNAL if its shape does not allow that.
absl::Status FinishOutput(Tensor& output, const TensorSpec& spec, const ModelSettings& settings) {
  const bool batched = settings.has_batch_dimension;
  const std::vector<int64_t> dims = spec.reshape.value_or(spec.dims);
  if (!batched && output.shape.size() == dims.size() + 1 && output.shape[0] == 1)
    output.shape.erase(output.shape.begin());
  if (!spec.reshape && !settings.strict_output_shapes) return absl::OkStatus();
  TensorSpec made = spec;
  made.dims = dims;
  if (absl::Status good = CheckAnswer(output, made, batched); !good.ok()) return good;
  output.shape = ToClient(spec, batched, output.shape);
  return absl::OkStatus();
}

}  // namespace

// For an ensemble without a batch dimension.
InferStep Ensembles::WithBatchOfOne() const {
  return [this](TensorCall call, TensorDone done) {
    // If the model is gone, the call fails below.
    if (const auto model = find_(call.model, call.version); model.ok()) {
      AddBatchOfOne(model->interface, call);
    }
    infer_(std::move(call), std::move(done));
  };
}

void Ensembles::Infer(std::shared_ptr<const ReadyModel> model, std::shared_ptr<const Ensemble> ensemble,
                      TensorCall call, TensorDone done) const {
  if (absl::Status ready = CheckReady(*ensemble); !ready.ok()) {
    pipeline_->CountMalformed(call.protocol, ready.code());
    std::move(done)(std::move(ready));
    return;
  }
  const ModelSettings& settings = ensemble->settings;
  const EnsembleRun::Deps deps{.plan = &ensemble->plan,
                               .infer = settings.has_batch_dimension ? infer_ : WithBatchOfOne(),
                               .clock = pipeline_->deps().clock};
  CountedCall counted(pipeline_->deps(), model->metrics(), call);
  auto pending = std::make_unique<Pending>(Pending{.model = std::move(model),
                                                   .ensemble = std::move(ensemble),
                                                   .counted = std::move(counted),
                                                   .wanted = call.outputs,
                                                   .items = 0,
                                                   .done = std::move(done)});
  absl::Status status = CheckRequest(call, settings);
  if (status.ok()) status = pending->counted.Enter(call, settings.name, settings.max_inflight);
  if (!status.ok()) {
    pending->counted.End(status.code(), /*computed=*/false);
    std::move(pending->done)(std::move(status));
    return;
  }
  pending->items = ItemsOf(call, settings);
  ReshapeInputs(call, settings);
  EnsembleRun::Start(deps, std::move(call),
                     [this, kept = std::move(pending)](absl::StatusOr<TensorAnswer> outcome) mutable {
                       if (outcome.ok()) outcome = ToAnswer(*std::move(outcome), *kept);
                       // If a step was rejected, the call counts as rejected; if a step failed, as failed.
                       const bool computed = outcome.ok() || absl::IsInternal(outcome.status());
                       // Cancelled steps are not counted (CountShed), so the ensemble is.
                       if (absl::IsCancelled(outcome.status()))
                         pipeline_->deps().metrics->RecordShed(ShedReason::kCancelled);
                       if (outcome.ok()) {
                         kept->model->metrics()->RecordBatch(kept->items, outcome->timings.infer);
                       }
                       kept->counted.End(outcome.status().code(), computed, outcome.ok() ? kept->items : 0,
                                         outcome.ok() ? outcome->timings : Timings{});
                       std::move(kept->done)(std::move(outcome));
                     });
}

absl::StatusOr<TensorAnswer> Ensembles::ToAnswer(TensorAnswer answer, const Pending& pending) const {
  const Ensemble& ensemble = *pending.ensemble;
  const ModelSettings& settings = ensemble.settings;
  answer.model = ensemble.settings.name;
  answer.version = ensemble.version;
  for (Tensor& output : answer.outputs) {
    const auto declares = [&](const TensorSpec& spec) { return spec.name == output.name; };
    const auto spec = std::find_if(settings.outputs.begin(), settings.outputs.end(), declares);
    if (absl::Status good = FinishOutput(output, *spec, settings); !good.ok()) return good;
    const auto asks = [&](const WantedOutput& one) { return one.name == output.name && one.classes > 0; };
    const auto wanted = std::find_if(pending.wanted.begin(), pending.wanted.end(), asks);
    if (wanted == pending.wanted.end()) continue;
    auto classified =
        Classify(output, wanted->classes, LabelsOf(ensemble, output.name), settings.has_batch_dimension);
    if (!classified.ok()) return classified.status();
    output = *std::move(classified);
  }
  return answer;
}

std::vector<std::string> Ensembles::LabelsOf(const Ensemble& ensemble, const std::string& output) const {
  const ModelSettings& settings = ensemble.settings;
  const EnsemblePlan& plan = ensemble.plan;
  for (size_t i = 0; i < settings.outputs.size(); ++i) {
    if (settings.outputs[i].name != output) continue;
    if (!settings.outputs[i].labels.empty()) return settings.outputs[i].labels;
    if (!settings.labels.empty()) return settings.labels;
    const EnsemblePlan::Step& step = plan.steps[*plan.tensors[plan.outputs[i]].maker];
    const auto model = find_(step.model, step.version);
    if (!model.ok()) break;
    for (const EnsemblePlan::Port& port : step.outputs) {
      if (port.tensor != plan.outputs[i]) continue;
      return model->ensemble != nullptr ? LabelsOf(*model->ensemble, port.name) : model->labels_of(port.name);
    }
  }
  return {};
}

}  // namespace saccade::server
