#include "server/inference/cached_inference.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "server/cache/cache_key.h"
#include "server/core/request.h"
#include "server/engine/count_shed.h"
#include "server/engine/counted_call.h"
#include "server/engine/priority_level.h"
#include "server/inference/model_facts.h"

namespace saccade::server {
namespace {

// Whether finding the answer in the cache takes long, because outputs are sorted for each request.
bool IsClassified(const TensorCall& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(),
                     [](const WantedOutput& output) { return output.classes > 0; });
}

// Inputs up to this size are hashed on the thread that brings them: that takes about 10 us, less than handing
// them to another thread.
constexpr int64_t kMaxHashedHere = 16 << 10;

// Before the model's calls that wait to be looked up, because the answer is there.
DecodeQueue::Order OrderOfComputed(const ModelSettings& settings, const std::string& client,
                                   absl::Time deadline) {
  return {.model = settings.name,
          .weight = settings.batching.weight,
          .client = client,
          .priority = std::numeric_limits<int>::max(),
          .deadline = deadline,
          .may_replace = false,
          .done_in_any_case = true};
}

int64_t BytesOf(const TensorCall& call) {
  int64_t bytes = 0;
  for (const Tensor& input : call.inputs) bytes += static_cast<int64_t>(input.data.size());
  return bytes;
}

}  // namespace

struct CachedInference::Call {
  std::shared_ptr<ServedModel> model;
  TensorCall call;
  TensorDone done;
  CountedCall counted;
  CacheKey key = {};
  // Time spent looking for the answer.
  absl::Duration looked = absl::ZeroDuration();
  // The outputs that are cached for the key, if the call wants more than these.
  std::vector<Tensor> older = {};
  // True if an equal call was computed for this one.
  bool joined = false;
  // Set if the model keeps the order of answers. Destroyed before `model`, which owns the order.
  std::optional<AnswerOrder::Turn> turn = std::nullopt;

  // At once, like all errors from before a call was computed.
  void Fail(absl::Status why) {
    counted.End(why.code(), /*computed=*/false);
    std::move(done)(std::move(why));
    turn.reset();
  }
  void Leave(TensorAnswer answer) {
    counted.End(absl::StatusCode::kOk, /*computed=*/false);
    std::move(done)(std::move(answer));
  }
};

void CachedInference::Infer(std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done) {
  CountedCall counted(pipeline_.deps(), model->metrics(), call);
  const auto made = std::make_shared<Call>(Call{.model = std::move(model),
                                                .call = std::move(call),
                                                .done = std::move(done),
                                                .counted = std::move(counted)});
  const ModelSettings& settings = made->model->settings();
  absl::Status status = CheckPriorityLevel(made->call.priority, settings.name, settings.batching);
  if (status.ok()) status = made->counted.Enter(made->call, settings.name, settings.max_inflight);
  if (!status.ok()) return made->Fail(std::move(status));
  if (AnswerOrder* order = made->model->answer_order(); order != nullptr) made->turn.emplace(order->Enter());
  if (BytesOf(made->call) <= kMaxHashedHere && !IsClassified(made->call)) return LookUp(made);
  const DecodeQueue::Order order = {.model = settings.name,
                                    .weight = settings.batching.weight,
                                    .client = made->call.client,
                                    .priority = settings.batching.UrgencyOf(made->call.priority),
                                    .deadline = made->call.deadline,
                                    .done_in_any_case = true};
  // Too many pictures wait for the pool. The call needs no decoding, so it is computed as without a cache.
  const auto compute = [this, made](const absl::Status& /*full*/) {
    compute_(made->model, std::move(made->call), std::move(made->done), nullptr, made->counted.TakeTicket(),
             std::move(made->turn));
  };
  const absl::Status scheduled =
      pipeline_.deps().decode_pool->Schedule([this, made] { LookUp(made); }, order, compute);
  if (!scheduled.ok()) compute(scheduled);
}

void CachedInference::LookUp(const std::shared_ptr<Call>& call) {
  Clock* const clock = pipeline_.deps().clock;
  const absl::Time start = clock->Now();
  call->key = CacheKeyOf(call->call);
  call->looked += clock->Now() - start;
  Try(call, /*may_join=*/true);
}

void CachedInference::Try(const std::shared_ptr<Call>& call, bool may_join) {
  Clock* const clock = pipeline_.deps().clock;
  const absl::Time start = clock->Now();
  std::optional<TensorAnswer> kept = call->model->cached_answers()->Find(call->key);
  auto cut = kept ? CutFor(*call->model, kept->outputs, call->call.outputs) : std::nullopt;
  call->looked += clock->Now() - start;
  if (cut) {
    if (!cut->ok()) return call->Fail(cut->status());
    // No pass tells that the model is used.
    call->model->NoteUse();
    call->model->cache_metrics()->RecordHit(call->looked);
    if (call->joined) call->model->cache_metrics()->RecordJoined();
    kept->outputs = **std::move(cut);
    // The cache may drop the entry while the answer is sent.
    kept->charge = call->counted.ForAnswer(BytesOf(kept->outputs));
    if (!call->turn) return call->Leave(*std::move(kept));
    return call->turn->Answer(
        [call, answer = *std::move(kept)]() mutable { call->Leave(std::move(answer)); });
  }
  // What of the entry this request did not ask for stays in it.
  if (kept) call->older = std::move(kept->outputs);
  if (!may_join) return Lead(call, nullptr);
  SingleFlight::Waiter waiter = {
      .priority = call->model->settings().batching.UrgencyOf(call->call.priority),
      .deadline = call->call.deadline,
      .turn = call->turn ? call->turn->number() : 0,
      .check =
          [call](absl::Time now) {
            return CheckAlive({.arrival = call->call.arrival,
                               .deadline = call->call.deadline,
                               .cancellation = call->call.cancellation},
                              now);
          },
      .resume = [this, call](SingleFlight::Event event,
                             absl::Status why) { Resume(call, event, std::move(why)); }};
  auto flight = flights_.Join(call->model->cached_answers().get(), call->key, waiter);
  if (flight != nullptr) Lead(call, std::move(flight));
}

void CachedInference::Resume(const std::shared_ptr<Call>& call, SingleFlight::Event event, absl::Status why) {
  switch (event) {
    case SingleFlight::Event::kAnswered:
      call->joined = true;
      if (IsClassified(call->call) && TryOnPool(call)) return;
      return Try(call, /*may_join=*/false);
    case SingleFlight::Event::kLeaderLeft:
      return Try(call, /*may_join=*/true);
    case SingleFlight::Event::kLeaderFailed:
      return Try(call, /*may_join=*/false);
    case SingleFlight::Event::kExpired:
      break;
  }
  CountShed(*pipeline_.deps().metrics, call->call.nested, why);
  call->model->cache_metrics()->RecordMiss(call->looked);
  call->Fail(std::move(why));
}

bool CachedInference::TryOnPool(const std::shared_ptr<Call>& call) {
  const ModelSettings& settings = call->model->settings();
  const DecodeQueue::Order order = OrderOfComputed(settings, call->call.client, call->call.deadline);
  return pipeline_.deps().decode_pool->Schedule([this, call] { Try(call, /*may_join=*/false); }, order).ok();
}

// `flight` is null if no other call may join.
void CachedInference::Lead(const std::shared_ptr<Call>& call, std::shared_ptr<SingleFlight::Flight> flight) {
  // Lands also if there is no memory to go on, or if `done` throws or is destroyed without a call: equal
  // calls would wait for a flight that never lands. A second landing does nothing.
  const std::shared_ptr<void> landing(nullptr, [this, flight](void*) noexcept {
    if (flight == nullptr) return;
    try {
      flights_.Land(flight, absl::ResourceExhaustedError("an equal call could not be answered"));
    } catch (...) {
      // All were resumed.
    }
  });
  Clock* const clock = pipeline_.deps().clock;
  const auto keeping = std::make_shared<absl::Duration>();
  // The model may be freed before the answer is cached; its CachedAnswers are then closed.
  auto answers = call->model->cached_answers();
  Keep keep = [key = call->key, clock, keeping, facts = FactsOfModel(*call->model), answers,
               older = std::move(call->older)](const TensorAnswer& answer) {
    const absl::Time computed = clock->Now();
    TensorAnswer entry{.model = answer.model,
                       .version = answer.version,
                       .outputs = older.empty() ? answer.outputs : Union(older, answer.outputs, facts)};
    answers->Keep(key, entry);
    *keeping = clock->Now() - computed;
  };
  const ModelSettings& settings = call->model->settings();
  const DecodeQueue::Order order = OrderOfComputed(settings, call->call.client, absl::InfiniteFuture());
  const SingleFlight::Elsewhere elsewhere = [pool = pipeline_.deps().decode_pool,
                                             order](std::function<void()> task) {
    return pool->Schedule(std::move(task), order, nullptr).ok();
  };
  TensorDone done = [this, flight, landing, elsewhere, answers, looked = call->looked, keeping,
                     metrics = call->model->cache_metrics(),
                     done = std::move(call->done)](absl::StatusOr<TensorAnswer> answer) mutable {
    const absl::Status outcome = answer.status();
    // A request that is wrong was not looked for.
    if (!absl::IsInvalidArgument(outcome)) metrics->RecordMiss(looked + *keeping);
    std::move(done)(std::move(answer));
    if (flight != nullptr) flights_.Land(flight, outcome, elsewhere);
  };
  compute_(call->model, std::move(call->call), std::move(done), std::move(keep), call->counted.TakeTicket(),
           std::move(call->turn));
}

}  // namespace saccade::server
