// Calls of models whose answers are cached.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "server/cache/single_flight.h"
#include "server/catalog/served_model.h"
#include "server/core/tensor_call.h"
#include "server/engine/answer_order.h"
#include "server/engine/pipeline.h"

namespace saccade::server {

// Thread-safe.
class CachedInference {
 public:
  // Called with an answer that was computed, before outputs are cut from it.
  using Keep = absl::AnyInvocable<void(const TensorAnswer&)>;
  // Computes a call that has been admitted with this ticket, and has this turn if the model keeps the order
  // of answers.
  using Compute = std::function<void(std::shared_ptr<ServedModel>, TensorCall, TensorDone, Keep,
                                     std::shared_ptr<Admission::Ticket>, std::optional<AnswerOrder::Turn>)>;

  // `pipeline` must outlive this object, and this object must outlive every call.
  CachedInference(Pipeline* pipeline, Compute compute) : pipeline_(*pipeline), compute_(std::move(compute)) {}

  // Admits the call, hashes its input (on the decode pool, unless it is small and no output is classified),
  // and answers it from the cache, or with the answer of an equal call that is being computed, or computes
  // it. Whichever it is, the answer leaves at the call's turn if the model keeps the order of answers.
  // REQUIRES: model->cached_answers() is not null.
  void Infer(std::shared_ptr<ServedModel> model, TensorCall call, TensorDone done);

  // Ends calls that wait for equal ones and are cancelled or late. Call it periodically.
  void Sweep() { flights_.Sweep(pipeline_.deps().clock->Now()); }

 private:
  struct Call;

  void LookUp(const std::shared_ptr<Call>& call);
  // Answers from the cache, or else joins an equal call if `may_join`, or computes.
  void Try(const std::shared_ptr<Call>& call, bool may_join);
  // For a call that waited. Returns false if the pool has no room.
  bool TryOnPool(const std::shared_ptr<Call>& call);
  void Lead(const std::shared_ptr<Call>& call, std::shared_ptr<SingleFlight::Flight> flight);
  void Resume(const std::shared_ptr<Call>& call, SingleFlight::Event event, absl::Status why);

  Pipeline& pipeline_;
  const Compute compute_;
  SingleFlight flights_;
};

}  // namespace saccade::server
