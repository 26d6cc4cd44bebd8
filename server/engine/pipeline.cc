#include "server/engine/pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/shed_reason.h"
#include "server/engine/call_share.h"
#include "server/engine/engine.h"
#include "server/engine/network_input.h"
#include "server/engine/priority_level.h"

namespace saccade::server {
namespace {

absl::Status NotForEnsembles(const ReadyModel& ensemble) {
  return absl::InvalidArgumentError(absl::StrCat("model '", ensemble.name(),
                                                 "' is an ensemble, which takes tensors only; call "
                                                 "ModelInfer of the Open Inference Protocol"));
}

Applicant ApplicantOf(const Request& request, int64_t bytes, const ReadyModel& model) {
  return {.bytes = bytes,
          .charged_bytes = request.charged_bytes,
          .client = request.client,
          .model = model.name(),
          .model_bounds = model.settings().max_inflight,
          .nested = request.nested};
}

}  // namespace

// A request whose model is being loaded.
struct Pipeline::Waiting {
  Request request;
  PredictDone done;
};

void Pipeline::CountNotFound(std::string_view protocol, const absl::Status& status) {
  deps_.metrics->RecordUnknownModel(protocol, status.code());
  if (const auto reason = StatedShedReason(status)) deps_.metrics->RecordShed(*reason);
}

absl::StatusOr<std::shared_ptr<ReadyModel>> Pipeline::Find(const Request& request) {
  auto found = FindAllowed(request);
  if (found.ok() && (*found)->is_ensemble()) found = NotForEnsembles(**found);
  if (!found.ok()) CountNotFound(request.protocol, found.status());
  return found;
}

absl::StatusOr<std::shared_ptr<ReadyModel>> Pipeline::FindAllowed(const Request& request) const {
  if (absl::Status allowed = CheckModel(request); !allowed.ok()) return allowed;
  return deps_.models->FindModel(request.model, request.version);
}

absl::Status Pipeline::CheckModel(const CallHead& call) const {
  if (deps_.check_model == nullptr || call.nested) return absl::OkStatus();
  return deps_.check_model(call.client, call.model);
}

absl::StatusOr<std::shared_ptr<Admission::Ticket>> Pipeline::AdmitBytes(const Request& request, int64_t bytes,
                                                                        const ReadyModel& model) {
  auto ticket = deps_.admission->Admit(ApplicantOf(request, bytes, model));
  if (!ticket.ok()) return ticket.status();
  return std::make_shared<Admission::Ticket>(*std::move(ticket));
}

absl::Status Pipeline::CheckAdmission(const Request& request, int64_t bytes) {
  auto model = Find(request);
  if (!model.ok()) {
    // The caller does not wait, but its next attempt finds the model loaded.
    if (absl::IsUnavailable(model.status())) deps_.models->WantModel(request);
    return model.status();
  }
  absl::Status status = request.accepts ? request.accepts((*model)->description()) : absl::OkStatus();
  if (status.ok()) {
    status = CheckAlive(
        {.arrival = request.arrival, .deadline = request.deadline, .cancellation = request.cancellation},
        deps_.clock->Now());
  }
  if (status.ok()) status = deps_.admission->CheckAdmission(ApplicantOf(request, bytes, **model));
  if (status.ok()) return status;
  // Counted like a call that arrived with its input.
  PredictCall(request, [](const absl::StatusOr<Response>&) {}, DepsOfCall(*model)).Refuse(status);
  return status;
}

void Pipeline::Predict(Request request, PredictDone done) {
  auto found = FindAllowed(request);
  if (!absl::IsUnavailable(found.status()))
    return PredictOn(std::move(found), std::move(request), std::move(done), nullptr);
  auto waiting = std::make_shared<Waiting>(Waiting{std::move(request), std::move(done)});
  const auto go_on = [this, waiting](absl::StatusOr<std::shared_ptr<ReadyModel>> model) {
    PredictOn(std::move(model), std::move(waiting->request), std::move(waiting->done), nullptr);
  };
  ModelFinder::Resume resume = [this, waiting, go_on](absl::Status loaded) {
    if (!loaded.ok()) return go_on(std::move(loaded));
    go_on(FindAllowed(waiting->request));
  };
  // The model may have become ready meanwhile.
  if (!deps_.models->AwaitModel(waiting->request, resume)) go_on(FindAllowed(waiting->request));
}

void Pipeline::PredictOn(absl::StatusOr<std::shared_ptr<ReadyModel>> found, Request request, PredictDone done,
                         std::shared_ptr<Admission::Ticket> ticket, std::optional<AnswerOrder::Turn> turn) {
  if (found.ok() && (*found)->is_ensemble()) found = NotForEnsembles(**found);
  if (!found.ok()) {
    CountNotFound(request.protocol, found.status());
    std::move(done)(found.status());
    return;
  }
  const std::shared_ptr<ReadyModel> model = *std::move(found);
  const int64_t bytes = request.bytes();
  auto call = std::make_shared<PredictCall>(std::move(request), std::move(done), DepsOfCall(model));
  if (absl::Status status = Check(*call, *model); !status.ok()) {
    call->Refuse(status);
    return;
  }
  if (ticket == nullptr) {
    auto admitted = AdmitBytes(call->request(), bytes, *model);
    if (!admitted.ok()) {
      call->Refuse(admitted.status());
      return;
    }
    ticket = *std::move(admitted);
  }
  call->UseTicket(std::move(ticket));
  if (AnswerOrder* order = model->answer_order(); order != nullptr)
    call->KeepOrder(turn ? *std::move(turn) : order->Enter());
  if (IsReady(call->request())) {
    Prepare(*model, std::move(call));
    return;
  }
  const models::Medium medium = model->description().input.medium;
  const DecodeQueue::Order order = {
      .model = model->name(),
      .weight = model->settings().batching.weight,
      .client = call->request().client,
      .priority = model->settings().batching.UrgencyOf(call->request().priority),
      .deadline = call->request().deadline,
      .may_be_long = medium != models::Medium::kPictures};
  absl::Status scheduled =
      deps_.decode_pool->Schedule([this, model, call]() mutable { Prepare(*model, std::move(call)); }, order,
                                  [call](absl::Status why) { call->Refuse(std::move(why)); });
  if (!scheduled.ok()) call->Refuse(scheduled);
}

PredictCall::Deps Pipeline::DepsOfCall(std::shared_ptr<const ReadyModel> model) const {
  return {.model = std::move(model),
          .metrics = deps_.metrics,
          .clock = deps_.clock,
          .encode_pool = deps_.decode_pool};
}

// Checks that cost nothing.
absl::Status Pipeline::Check(const PredictCall& call, const ReadyModel& model) const {
  const Request& request = call.request();
  if (absl::Status input = model.engine().Check(request); !input.ok()) return input;
  if (request.accepts != nullptr) {
    if (absl::Status accepted = request.accepts(model.description()); !accepted.ok()) return accepted;
  }
  const int64_t size = request.size();
  if (size < 1 || size > model.max_batch_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request holds ", size, " ", model.engine().items_name(), "; model '", model.name(),
                     "' takes 1 to ", model.max_batch_size(), " (its max_batch_size)"));
  }
  absl::Status level = CheckPriorityLevel(request.priority, model.name(), model.settings().batching);
  if (!level.ok()) return level;
  return CheckAlive(call.traits(), deps_.clock->Now());
}

void Pipeline::Prepare(ReadyModel& model, std::shared_ptr<PredictCall> call) {
  absl::Status made = model.engine().Prepare(*call, *deps_.decoder, deps_.clock);
  if (!made.ok()) {
    call->Refuse(made);
    return;
  }
  call->MarkPrepared();
  SubmitShares(model, ShareOut(std::move(call), model.max_batch_size()));
}

absl::Status Pipeline::CountStreamed(int64_t index, const std::string& client) {
  if (index == 0) return absl::OkStatus();
  absl::Status counted = deps_.admission->CountRequest(client);
  if (!counted.ok()) deps_.metrics->RecordShed(ShedReason::kClientRate);
  return counted;
}

void Pipeline::RefreshGauges(int64_t other_bytes) {
  const Inflight inflight = deps_.admission->inflight();
  deps_.metrics->SetInflight(inflight.requests, inflight.bytes + other_bytes, inflight.decoded_bytes);
}

}  // namespace saccade::server
