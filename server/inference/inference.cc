#include "server/inference/inference.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "server/batching/batch_task.h"
#include "server/core/served_by.h"
#include "server/inference/cached_outputs.h"
#include "server/inference/crop_models.h"
#include "server/inference/model_facts.h"
#include "server/inference/parameters.h"
#include "server/inference/picture_inputs.h"
#include "server/inference/program_tensors.h"
#include "server/inference/shared_outputs.h"
#include "server/inference/task_outputs.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

constexpr char kPlatform[] = "saccade";

// Outputs that wait on the decode pool to be written to GPUs, and other tasks there, before a computing
// thread writes its own.
constexpr int64_t kMaxWritesAhead = 8;

// A call that is being computed.
struct Pending {
  TensorCall call;
  TensorDone done;
  std::shared_ptr<ServedModel> model;
  // The answer of the pass, filled in by MakeAnswer(); charge and timings are added by ToAnswer().
  TensorAnswer answer = {};
  // Null unless the answer is cached.
  absl::AnyInvocable<void(const TensorAnswer&)> keep = nullptr;

  const ModelSettings& settings() const { return model->settings(); }
};

// As Triton shows it: the backend's name where it has no platform.
std::string PlatformFor(Backend backend) {
  const std::string platform = PlatformOf(backend);
  return platform.empty() ? NameOf(backend) : platform;
}

// Moves the results out of `response`; the outputs refer to them.
absl::Status MakeAnswer(Response& response, Pending& pending) {
  const auto held = std::make_shared<Response>(std::move(response));
  const std::vector<WantedOutput>& wanted = pending.call.outputs;
  const bool is_program = IsProgram(pending.settings());
  const bool is_kept = pending.keep != nullptr;
  const std::vector<WantedOutput> computed = is_kept ? OutputsToCache(wanted, is_program) : wanted;
  auto outputs = is_program ? ChooseOutputs(std::move(held->outputs), computed, pending.settings())
                            : MakeOutputs(held, computed, pending.settings().items);
  if (!outputs.ok()) return outputs.status();
  pending.answer.model = held->model;
  pending.answer.version = held->version;
  pending.answer.outputs = *std::move(outputs);
  if (!is_kept) return absl::OkStatus();
  pending.keep(pending.answer);
  // Always there, because all wanted outputs were computed.
  auto cut = CutFor(*pending.model, pending.answer.outputs, wanted);
  if (!cut) return absl::InternalError("an output that was asked for was not computed");
  if (!cut->ok()) return cut->status();
  pending.answer.outputs = **std::move(cut);
  return absl::OkStatus();
}

absl::StatusOr<TensorAnswer> ToAnswer(const absl::StatusOr<Response>& outcome, Pending& pending) {
  if (!outcome.ok()) return outcome.status();
  pending.answer.charge = outcome->charge;
  pending.answer.timings = outcome->timings;
  return std::move(pending.answer);
}

// A call whose outputs are written to shared memory.
struct SharingCall {
  HeldRegions held;
  TensorDone done;
  BatchTask::Traits traits;
  Clock* clock = nullptr;
  absl::StatusOr<TensorAnswer> answer = absl::UnknownError("");

  // OK unless the client is gone, and may use the memory for something else.
  absl::Status CheckWanted() const {
    absl::Status alive = CheckAlive(traits, clock->Now());
    if (absl::IsDeadlineExceeded(alive))
      return absl::DeadlineExceededError(
          "the deadline passed before the outputs were written to shared memory");
    return alive;
  }

  void End() {
    if (answer.ok()) {
      absl::Status shared = CheckWanted();
      if (shared.ok()) shared = ShareOutputs(held, answer->outputs);
      if (!shared.ok()) answer = std::move(shared);
    }
    // The last holder closes the memory.
    held.clear();
    std::move(done)(std::move(answer));
  }
};

// Wraps `call.done` to write the shared outputs first. If one is on a GPU, for which a thread has to wait,
// the outputs are written and the call is answered on `pool`, unless that is null, or has no room or so much
// waiting that pictures of other models would find none.
TensorDone Sharing(SharingCall call, DecodePool* pool, DecodeQueue::Order order) {
  const bool is_on_gpu = std::any_of(call.held.begin(), call.held.end(),
                                     [](const HeldRegion& to) { return SharedMemory::IsOnGpu(to.region); });
  if (!is_on_gpu) pool = nullptr;
  // Shared, because a pool without room destroys its task.
  return [kept = std::make_shared<SharingCall>(std::move(call)), pool,
          order = std::move(order)](absl::StatusOr<TensorAnswer> answer) mutable {
    kept->answer = std::move(answer);
    const bool waits = pool != nullptr && kept->answer.ok() && pool->pending() < kMaxWritesAhead;
    if (!waits || !pool->Schedule([kept] { kept->End(); }, order).ok()) kept->End();
  };
}

// Moves the tensors out of the call.
absl::Status TakeInput(TensorCall& call, const ModelSettings& settings, Request* request) {
  if (IsProgram(settings)) {
    NamedTensors named{.tensors = std::move(call.inputs), .rows = 1};
    const bool batched = settings.has_batch_dimension && !named.tensors.empty();
    if (batched) named.rows = named.tensors[0].shape.empty() ? 0 : named.tensors[0].shape[0];
    request->input = std::move(named);
    return absl::OkStatus();
  }
  auto pictures = PicturesOf(call);
  if (!pictures.ok()) return pictures.status();
  request->input = std::move(pictures->input);
  request->views = pictures->views;
  request->input_name = kImageInput;
  return absl::OkStatus();
}

ModelInterface InterfaceOfModel(const ServedModel& model) {
  if (model.ensemble() != nullptr) return InterfaceOf(*model.ensemble());
  const ModelSettings& settings = model.settings();
  if (IsProgram(settings)) {
    return {.name = model.name(),
            .versions = {model.version()},
            .platform = PlatformFor(settings.backend),
            .inputs = DescribeTensors(settings.inputs, settings.has_batch_dimension),
            .outputs = DescribeTensors(settings.outputs, settings.has_batch_dimension),
            .other_inputs = {},
            .max_batch_size = settings.has_batch_dimension ? model.max_batch_size() : 0};
  }
  const models::Description& description = model.description();
  return {.name = model.name(),
          .versions = {model.version()},
          .platform = kPlatform,
          .inputs = {DescribeImage(description.input)},
          .outputs = DescribeOutputs(description, model.settings().items),
          .other_inputs = FormsOfImage(description.input),
          .max_batch_size = model.max_batch_size()};
}

// Finds the models of ensembles' steps.
FindStep StepsIn(const Catalog* catalog) {
  return [catalog](const std::string& name, int64_t version) -> absl::StatusOr<StepModel> {
    auto model = catalog->FindReady(name, version);
    if (!model.ok()) return model.status();
    return StepModel{
        .interface = InterfaceOfModel(**model),
        .labels_of = [model = *model](const std::string& output) { return LabelsOfOutput(*model, output); },
        .ensemble = (*model)->ensemble()};
  };
}

}  // namespace

absl::Status CheckSteps(const Ensemble& ensemble, const Catalog& catalog) {
  const absl::Status runnable = CheckRunnable(ensemble, StepsIn(&catalog));
  return runnable.ok() ? FindCropModels(ensemble, catalog).status() : runnable;
}

Inference::Inference(Pipeline* pipeline, const Catalog* catalog, const SharedMemory* shared_memory,
                     StatusCodes codes)
    : pipeline_(pipeline),
      catalog_(catalog),
      shared_memory_(shared_memory),
      codes_(codes),
      ensembles_(pipeline, StepsIn(catalog),
                 [this](TensorCall call, TensorDone done) { Infer(std::move(call), std::move(done)); }),
      cached_(pipeline, [this](std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done,
                               CachedInference::Keep keep, std::shared_ptr<Admission::Ticket> ticket,
                               std::optional<AnswerOrder::Turn> turn) {
        Compute(std::move(model), std::move(call), std::move(done), std::move(keep), std::move(ticket),
                std::move(turn));
      }) {}

void Inference::Infer(TensorCall call, TensorDone done) {
  const auto find = [this](const TensorCall& of) -> absl::StatusOr<std::shared_ptr<ServedModel>> {
    if (absl::Status allowed = pipeline_->CheckModel(of); !allowed.ok()) return allowed;
    return catalog_->FindReady(of.model, of.version);
  };
  auto model = find(call);
  if (!absl::IsUnavailable(model.status()))
    return InferOn(std::move(model), std::move(call), std::move(done));
  // Waits if the model is loaded by requests.
  auto waiting = std::make_shared<std::pair<TensorCall, TensorDone>>(std::move(call), std::move(done));
  const auto go_on = [this, waiting](absl::StatusOr<std::shared_ptr<ServedModel>> found) {
    InferOn(std::move(found), std::move(waiting->first), std::move(waiting->second));
  };
  ModelFinder::Resume resume = [waiting, go_on, find](absl::Status loaded) {
    if (!loaded.ok()) return go_on(std::move(loaded));
    go_on(find(waiting->first));
  };
  // The model may have become ready meanwhile.
  if (!catalog_->AwaitModel(waiting->first, resume)) go_on(find(waiting->first));
}

void Inference::InferOn(absl::StatusOr<std::shared_ptr<ServedModel>> model, TensorCall call,
                        TensorDone done) {
  if (!model.ok()) {
    pipeline_->CountNotFound(call.protocol, model.status());
    return std::move(done)(codes_.OfMissingModel(model.status(), call.version != 0));
  }
  if (codes_.triton()) {
    done = [codes = codes_, done = std::move(done)](absl::StatusOr<TensorAnswer> answer) mutable {
      if (!answer.ok()) answer = codes.OfInference(answer.status());
      std::move(done)(std::move(answer));
    };
  }
  if (call.record != nullptr) call.record->SetVersion((*model)->version());
  if (call.served != nullptr && !call.nested) {
    call.served->version = (*model)->version();
    call.served->identity = (*model)->identity();
  }
  if (absl::Status once = CheckNamedOnce(call.outputs); !once.ok()) {
    pipeline_->CountMalformed(call.protocol, once.code());
    return std::move(done)(std::move(once));
  }
  if (WantsShared(call.outputs)) {
    auto held = HoldRegions(*shared_memory_, call.client, call.outputs);
    if (!held.ok()) {
      pipeline_->CountMalformed(call.protocol, held.status().code());
      return std::move(done)(held.status());
    }
    const Pipeline::Deps& deps = pipeline_->deps();
    const ModelSettings& settings = (*model)->settings();
    // On the pool, one answer could overtake another.
    DecodePool* const pool = (*model)->answer_order() == nullptr ? deps.decode_pool : nullptr;
    // Before the model's pictures that wait to be decoded, because the call has been computed.
    DecodeQueue::Order order = {.model = settings.name,
                                .weight = settings.batching.weight,
                                .client = call.client,
                                .priority = std::numeric_limits<int>::max(),
                                .deadline = call.deadline,
                                .may_replace = false,
                                .done_in_any_case = true};
    SharingCall sharing;
    sharing.held = *std::move(held);
    sharing.done = std::move(done);
    sharing.traits.arrival = call.arrival;
    sharing.traits.deadline = call.deadline;
    sharing.traits.cancellation = call.cancellation;
    sharing.clock = deps.clock;
    done = Sharing(std::move(sharing), pool, std::move(order));
  }
  if (const auto ensemble = (*model)->ensemble(); ensemble != nullptr) {
    return ensembles_.Infer(*std::move(model), ensemble, std::move(call), std::move(done));
  }
  if ((*model)->cached_answers() != nullptr) {
    return cached_.Infer(*std::move(model), std::move(call), std::move(done));
  }
  Compute(*std::move(model), std::move(call), std::move(done), nullptr, nullptr, std::nullopt);
}

void Inference::Compute(std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done,
                        CachedInference::Keep keep, std::shared_ptr<Admission::Ticket> ticket,
                        std::optional<AnswerOrder::Turn> turn) {
  Request request;
  static_cast<CallHead&>(request) = call;
  if (absl::Status taken = TakeInput(call, model->settings(), &request); !taken.ok()) {
    pipeline_->CountMalformed(call.protocol, taken.code());
    std::move(done)(std::move(taken));
    return;
  }
  auto pending =
      std::make_unique<Pending>(Pending{.call = std::move(call), .done = std::move(done), .model = model});
  pending->keep = std::move(keep);
  request.accepts = [kept = pending.get()](const models::Description& description) {
    const std::vector<WantedOutput>& wanted = kept->call.outputs;
    return IsProgram(kept->settings()) ? CheckProgramOutputs(wanted, kept->settings())
                                       : CheckOutputs(wanted, description, kept->settings().items);
  };
  request.encode = [kept = pending.get()](Response& response) {
    absl::Status made = MakeAnswer(response, *kept);
    response.answer_bytes = BytesOf(kept->answer.outputs);
    return made;
  };
  pipeline_->PredictOn(
      std::move(model), std::move(request),
      [kept = std::move(pending)](const absl::StatusOr<Response>& response) mutable {
        std::move(kept->done)(ToAnswer(response, *kept));
      },
      std::move(ticket), std::move(turn));
}

absl::StatusOr<std::shared_ptr<ServedModel>> Inference::FindReady(absl::string_view model,
                                                                  int64_t version) const {
  auto found = catalog_->FindReady(model, version);
  if (!found.ok() || (*found)->ensemble() == nullptr) return found;
  if (absl::Status ready = ensembles_.CheckReady(*(*found)->ensemble()); !ready.ok()) return ready;
  return found;
}

absl::Status Inference::CheckReady(absl::string_view model, int64_t version) const {
  return FindReady(model, version).status();
}

absl::StatusOr<ModelInterface> Inference::Describe(absl::string_view model, int64_t version) const {
  auto found = FindReady(model, version);
  if (!found.ok()) return found.status();
  ModelInterface interface = InterfaceOfModel(**found);
  // The version that was found may have been replaced meanwhile.
  if (version == 0) {
    if (auto served = catalog_->ServedVersions(model); !served.empty())
      interface.versions = std::move(served);
  }
  return interface;
}

}  // namespace saccade::server
