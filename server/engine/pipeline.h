// Takes a request through admission, decode pool, batcher and instance to its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/admission/admission.h"
#include "server/admission/client_crops.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/decode/decode_pool.h"
#include "server/decode/decoder.h"
#include "server/engine/answer_order.h"
#include "server/engine/predict_call.h"
#include "server/engine/ready_model.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

class Attester;
class CallWatch;
class Capture;

// Thread-safe.
class Pipeline {
 public:
  // All pointers must outlive the pipeline and every call in it.
  struct Deps {
    Clock* clock;
    Metrics* metrics;
    const ModelFinder* models;
    Admission* admission;
    DecodePool* decode_pool;
    const Decoder* decoder;
    // Null if no calls are sampled or logged.
    const CallWatch* watch = nullptr;
    // Null if no calls are captured.
    Capture* capture = nullptr;
    // Null if the daemon has no key to sign answers with.
    const Attester* attester = nullptr;
    // Whether a client may compute a model. Null: every client may compute all.
    std::function<absl::Status(absl::string_view client, absl::string_view model)> check_model = nullptr;
  };

  explicit Pipeline(const Deps& deps) : deps_(deps) {}

  // Does not block, but may compute a short batch on this thread (ReadyModel::Submit). A request whose model
  // has to be loaded first waits for that (ModelFinder::AwaitModel). `done` is called exactly once, on any
  // thread, possibly on this one before Predict() returns. The memory that `request` refers to must stay
  // valid until then.
  void Predict(Request request, PredictDone done);
  // The same for a model that the caller has found, or the error of looking for it: no version that has
  // become ready since then computes the request instead. A request that was admitted already shares its
  // ticket, which is null for others, and passes its turn if the model keeps the order of answers.
  void PredictOn(absl::StatusOr<std::shared_ptr<ReadyModel>> found, Request request, PredictDone done,
                 std::shared_ptr<Admission::Ticket> ticket,
                 std::optional<AnswerOrder::Turn> turn = std::nullopt);

  // For a request whose input, of `bytes` bytes, is still to arrive: checks that its model is ready and
  // accepts it, and that it would be admitted now. Holds nothing afterwards. Rejected requests are counted.
  absl::Status CheckAdmission(const Request& request, int64_t bytes);

  // Returns the result of Deps::check_model for a call. OK for a step of an ensemble, because the ensemble
  // itself was checked.
  absl::Status CheckModel(const CallHead& call) const;

  // Counts a message of a stream towards its client's rate; a stream's first message was counted as the
  // stream itself, when it arrived. Errors of Admission::CountRequest, which count as shed.
  absl::Status CountStreamed(int64_t index, const std::string& client);

  // Counts a request whose model could not be found ready, with `status`.
  void CountNotFound(std::string_view protocol, const absl::Status& status);

  // Counts a request that could not be parsed.
  void CountMalformed(std::string_view protocol, absl::StatusCode code) {
    deps_.metrics->RecordUnknownModel(protocol, code);
  }

  const Deps& deps() const { return deps_; }

  ClientCrops& client_crops() { return client_crops_; }

  // Updates the gauges of what is in flight. `other_bytes` are those that admission does not count. Called by
  // the metrics' scrape hook.
  void RefreshGauges(int64_t other_bytes);

 private:
  struct Waiting;
  absl::StatusOr<std::shared_ptr<ReadyModel>> Find(const Request& request);
  absl::StatusOr<std::shared_ptr<ReadyModel>> FindAllowed(const Request& request) const;
  absl::StatusOr<std::shared_ptr<Admission::Ticket>> AdmitBytes(const Request& request, int64_t bytes,
                                                                const ReadyModel& model);
  PredictCall::Deps DepsOfCall(std::shared_ptr<const ReadyModel> model) const;
  absl::Status Check(const PredictCall& call, const ReadyModel& model) const;
  void Prepare(ReadyModel& model, std::shared_ptr<PredictCall> call);

  const Deps deps_;
  ClientCrops client_crops_;
};

}  // namespace saccade::server
