// A request's way: admission, decode pool, batcher, instance, answer.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "server/admission/admission.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/decode/decode_pool.h"
#include "server/decode/picture_header.h"
#include "server/metrics/metrics.h"
#include "server/pipeline/catalog.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

class CallWatch;

// Thread-safe.
class Pipeline {
 public:
  // Everything must outlive the pipeline and every call in it.
  struct Rooms {
    Clock* clock;
    Metrics* metrics;
    Catalog* catalog;
    Admission* admission;
    DecodePool* decode_pool;
    DecodeLimits decode_limits;
    // Null if nobody wants to know of single calls.
    const CallWatch* watch = nullptr;
  };

  explicit Pipeline(const Rooms& rooms) : rooms_(rooms) {}

  // Never blocks. `done` is called exactly once: on this thread if the request is refused at once, else on a
  // thread of the decode pool or of an instance. Whatever `request` points into must live until then.
  void Predict(Request request, PredictDone done) { Predict(std::move(request), std::move(done), nullptr); }
  // The same for a request that was admitted before it was there; the call holds the ticket as well.
  void Predict(Request request, PredictDone done, std::shared_ptr<Admission::Ticket> ticket);

  // Whether a request whose input, of so many bytes, is still to come will be taken: its model is ready,
  // accepts it, and there is room, which the ticket holds. What is refused is counted.
  absl::StatusOr<std::shared_ptr<Admission::Ticket>> Admit(const Request& request, int64_t bytes);

  // Counts a request that its protocol could not read.
  void CountMalformed(std::string_view protocol, absl::StatusCode code) {
    rooms_.metrics->RecordUnknownModel(protocol, code);
  }

  const Rooms& rooms() const { return rooms_; }

  // Brings the gauges that are cheaper to ask for than to keep up to date; for the metrics' scrape hook.
  void RefreshGauges();

 private:
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(const Request& request);
  absl::StatusOr<std::shared_ptr<Admission::Ticket>> AdmitBytes(const Request& request, int64_t bytes,
                                                                const ServedModel& model);
  PredictCall::Server ServerOf(const std::shared_ptr<ServedModel>& model) const;
  absl::Status Check(const PredictCall& call, const ServedModel& model) const;
  void Prepare(ServedModel& model, std::shared_ptr<PredictCall> call);

  const Rooms rooms_;
};

}  // namespace saccade::server
