#include "server/ensembles/ensembles.h"

#include <algorithm>
#include <utility>

#include "server/core/classification.h"
#include "server/engine/counted_call.h"
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

void Ensembles::Infer(std::shared_ptr<const ReadyModel> model, std::shared_ptr<const Ensemble> ensemble,
                      TensorCall call, TensorDone done) const {
  if (absl::Status ready = CheckReady(*ensemble); !ready.ok()) {
    pipeline_->CountMalformed(call.protocol, ready.code());
    std::move(done)(std::move(ready));
    return;
  }
  const ModelSettings& settings = ensemble->settings;
  const EnsembleRun::Deps deps{.plan = &ensemble->plan, .infer = infer_, .clock = pipeline_->deps().clock};
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
  EnsembleRun::Start(deps, std::move(call),
                     [this, kept = std::move(pending)](absl::StatusOr<TensorAnswer> outcome) mutable {
                       if (outcome.ok()) outcome = ToAnswer(*std::move(outcome), *kept);
                       // If a step was rejected, the call counts as rejected; if a step failed, as failed.
                       const bool computed = outcome.ok() || absl::IsInternal(outcome.status());
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
    absl::Status good = CheckAnswer(output, *spec, settings.has_batch_dimension);
    if (!good.ok()) return good;
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
    if (model->ensemble == nullptr) return model->labels;
    for (const EnsemblePlan::Port& port : step.outputs) {
      if (port.tensor == plan.outputs[i]) return LabelsOf(*model->ensemble, port.name);
    }
  }
  return {};
}

}  // namespace saccade::server
