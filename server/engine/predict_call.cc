#include "server/engine/predict_call.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>

#include "models/tasks/merge_tiles.h"
#include "server/core/served_by.h"
#include "server/core/shed_reason.h"
#include "server/decode/decode_pool.h"
#include "server/engine/answer_charge.h"
#include "server/engine/count_shed.h"
#include "server/engine/shadow_copy.h"
#include "server/engine/shadow_sender.h"
#include "server/engine/wrong_item.h"
#include "server/logging/log.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

// Largest result that the instance's thread encodes itself: bytes of maps and explanations, pixels of a
// picture with masks. Takes a few milliseconds.
constexpr int64_t kMaxInlineEncode = 1 << 20;

// Results wait for the pool in memory. If so many tasks wait, the instance encodes, and computes less
// meanwhile.
constexpr int64_t kMaxEncodesAhead = 8;

// Items of a request that are looked at for drift.
constexpr size_t kMaxWatchedItems = 8;

bool HasMap(const models::TaskResult& result) {
  if (const auto* found = std::get_if<models::Detections>(&result)) {
    const auto has_mask = [](const models::Detection& one) { return !one.mask.empty(); };
    return std::any_of(found->items.begin(), found->items.end(), has_mask);
  }
  return std::holds_alternative<models::Segmentation>(result) ||
         std::holds_alternative<models::Disparity>(result) ||
         std::holds_alternative<models::Restoration>(result);
}

// Returns the index of the first failure; nullopt if there is none.
std::optional<size_t> FirstFailure(const std::vector<models::TaskResult>& results) {
  const auto failed = [](const models::TaskResult& one) {
    return std::holds_alternative<models::Failure>(one);
  };
  const auto found = std::find_if(results.begin(), results.end(), failed);
  if (found == results.end()) return std::nullopt;
  return static_cast<size_t>(found - results.begin());
}

// Bytes of results that were not charged with the input, as maps are.
int64_t BytesToCharge(const std::vector<models::TaskResult>& results) {
  const bool found = !results.empty() && std::holds_alternative<models::Detections>(results.front());
  return found ? BytesOf(results) : 0;
}

// One result for each item that was sent.
std::vector<models::TaskResult> MergeTiles(std::vector<models::TaskResult> results,
                                           const std::vector<SentItem>& sent) {
  const auto cut = [](const SentItem& one) { return !one.tiles.empty(); };
  if (std::none_of(sent.begin(), sent.end(), cut)) return results;
  std::vector<models::TaskResult> merged;
  auto next = results.begin();
  for (const SentItem& one : sent) {
    const auto count = static_cast<int64_t>(std::max<size_t>(1, one.tiles.size()));
    std::vector<models::TaskResult> parts(std::make_move_iterator(next),
                                          std::make_move_iterator(next + count));
    next += count;
    if (one.tiles.empty()) {
      merged.push_back(std::move(parts.front()));
      continue;
    }
    const models::Size picture = one.region ? models::Size{one.region->height, one.region->width}
                                            : models::Size{one.height, one.width};
    merged.push_back(models::MergeTiles(std::move(parts), one.tiles, picture));
  }
  return merged;
}

}  // namespace

PredictCall::PredictCall(Request request, PredictDone done, Deps deps)
    : request_(std::move(request)), deps_(std::move(deps)), done_(std::move(done)) {
  if (request_.record != nullptr) request_.record->SetVersion(deps_.model->version());
  // A step's model is not what the client named.
  if (request_.served != nullptr && !request_.nested) {
    request_.served->version = deps_.model->version();
    request_.served->identity = deps_.model->identity();
  }
}

PredictCall::~PredictCall() {
  if (finished_) return;
  try {
    Refuse(absl::InternalError("the request was dropped without an answer; this is a bug in saccaded"));
  } catch (const std::exception& error) {
    // Destroying `done_` answers the client.
    Log(LogLevel::kError, "a request was dropped", {{"what", error.what()}});
  }
}

BatchTask::Traits PredictCall::traits() const {
  return {.size = request_.size(),
          .priority = request_.priority,
          .arrival = request_.arrival,
          .deadline = request_.deadline,
          .timeout = request_.timeout,
          .cancellation = request_.cancellation};
}

absl::Status PredictCall::AddDecodedBytes(int64_t bytes) {
  absl::Status added = ticket_->AddDecodedBytes(bytes);
  if (added.ok()) input_bytes_ += bytes;
  return added;
}

void PredictCall::MarkPrepared() {
  prepared_ = deps_.clock->Now();
  if (request_.record != nullptr) request_.record->Prepared(prepared_, was_worked_on());
}

void PredictCall::ExpectShares(int count) {
  absl::MutexLock lock(&mutex_);
  outstanding_ = count;
  results_.resize(items_.size());
}

bool PredictCall::Advance(size_t item, double done) const {
  if (request_.progress) {
    request_.progress((static_cast<double>(item) + done) / static_cast<double>(request_.size()));
  }
  return CheckAlive(traits(), deps_.clock->Now()).ok();
}

void PredictCall::Explain(models::Explanation explanation) {
  absl::MutexLock lock(&mutex_);
  explanation_ = std::move(explanation);
}

void PredictCall::EndShare(const std::vector<size_t>& items, ShareAnswer answer, const ForwardPass& pass) {
  auto* const results = std::get_if<std::vector<models::TaskResult>>(&answer);
  if (const auto failed = results == nullptr ? std::nullopt : FirstFailure(*results)) {
    FailShare(ErrorOf(std::get<models::Failure>((*results)[*failed]), items[*failed]), /*computed=*/true);
    return;
  }
  if (absl::Status room = ChargeWaiting(results == nullptr ? 0 : BytesToCharge(*results)); !room.ok()) {
    FailShare(std::move(room), /*computed=*/false);
    return;
  }
  bool last = false;
  {
    absl::MutexLock lock(&mutex_);
    if (results == nullptr) {
      outputs_ = std::get<std::vector<Tensor>>(std::move(answer));
    } else {
      for (size_t i = 0; i < items.size(); ++i) results_[items[i]] = std::move((*results)[i]);
    }
    passes_ = {std::max(passes_.batch_size, pass.batch_size), std::min(passes_.started, pass.started),
               std::max(passes_.ended, pass.ended), passes_.core_wait + pass.core_wait};
    ++number_of_passes_;
    last = EndOne();
  }
  if (last) AnswerShares(pass.copies);
}

absl::Status PredictCall::ErrorOf(const models::Failure& failure, size_t item) const {
  // A model that was told to stop also reports a failure.
  if (absl::Status alive = CheckAlive(traits(), deps_.clock->Now()); !alive.ok()) return alive;
  if (!failure.of_input) return absl::InternalError(failure.message);
  return WrongItem(request_, deps_.model->description().input, items_[item], static_cast<int64_t>(item),
                   failure);
}

absl::Status PredictCall::ChargeWaiting(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  // The results of the last share do not wait. A copy holds no ticket: its memory is the shadow's.
  if (bytes == 0 || outstanding_ == 1 || request_.is_copy) return absl::OkStatus();
  return ticket_->AddDecodedBytes(bytes);
}

void PredictCall::FailShare(absl::Status why, bool computed) {
  bool last = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_) failure_ = ShareFailure{std::move(why), computed};
    last = EndOne();
  }
  if (last) {
    AnswerShares(/*copies=*/nullptr);
  } else if (request_.cancellation != nullptr) {
    // The call has failed, so its other shares need not be computed.
    request_.cancellation->Cancel();
  }
}

bool PredictCall::EndOne() { return --outstanding_ == 0; }

// Runs on the thread of the last share; no other thread uses the call any more.
void PredictCall::AnswerShares(PassCopies* copies) {
  std::optional<ShareFailure> failure;
  std::vector<models::TaskResult> results;
  std::vector<Tensor> outputs;
  std::optional<models::Explanation> explanation;
  ForwardPass passes;
  int number_of_passes = 0;
  {
    absl::MutexLock lock(&mutex_);
    failure = std::move(failure_);
    results = std::move(results_);
    outputs = std::move(outputs_);
    explanation = std::move(explanation_);
    passes = passes_;
    number_of_passes = number_of_passes_;
  }
  passes.copies = copies;
  if (failure && !failure->computed) {
    Refuse(std::move(failure->why));
    return;
  }
  if (failure) {
    Finish(std::move(failure->why), /*computed=*/true);
    return;
  }
  Response response;
  response.model = request_.model;
  response.version = deps_.model->version();
  response.description = &deps_.model->description();
  response.results = MergeTiles(std::move(results), sent_);
  response.outputs = std::move(outputs);
  response.explanation = std::move(explanation);
  response.sent = sent_;
  response.batch_size = passes.batch_size;
  response.passes = number_of_passes;
  response.timings = {.decode = was_worked_on() ? prepared_ - request_.arrival : absl::ZeroDuration(),
                      .queue = passes.started - prepared_,
                      .infer = passes.ended - passes.started,
                      .core_wait = passes.core_wait};
  Answer(std::move(response), passes);
}

void PredictCall::WatchDrift(const Response& response) const {
  DriftWatch* const drift = deps_.model->drift();
  if (drift == nullptr || request_.is_copy || !drift->Wants(deps_.clock->Now())) return;
  const models::ImageInput& input = response.description->input;
  size_t first = 0;
  for (size_t i = 0; i < std::min(kMaxWatchedItems, response.results.size()) && first < items_.size(); ++i) {
    DriftSample sample;
    SampleInput(input, items_[first].placement, items_[first].pixels, sample);
    SampleAnswer(response.results[i], sample);
    drift->Add(sample);
    // A picture that was cut has one result; its first tile stands for it.
    first += i < sent_.size() ? std::max<size_t>(1, sent_[i].tiles.size()) : 1;
  }
}

void PredictCall::Answer(Response response, const ForwardPass& passes) {
  WatchDrift(response);
  answer_bytes_ = response.bytes();
  ShadowCopies copies = CopyForShadow({deps_, request_, response, items_, bucket_}, passes.copies);
  items_.clear();
  const bool encodes_long = EncodesLong(response);
  if (encodes_long) {
    response.still_wanted = [this] { return CheckAlive(traits(), deps_.clock->Now()); };
    response.take_memory = ChargeBeyondInputs();
  }
  if (!encodes_long || deps_.encode_pool->pending() >= kMaxEncodesAhead)
    return Encode(std::move(response), passes.ended, std::move(copies), nullptr);
  struct Work {
    Response response;
    ShadowCopies copies;
    std::shared_ptr<const AnswerCharge> charge;
  };
  // Shared, because a pool without room destroys its task.
  const auto work = std::make_shared<Work>(Work{std::move(response), std::move(copies), nullptr});
  work->charge = ChargeLargeAnswer(*ticket_, answer_bytes_);
  auto encode = [call = shared_from_this(), work, pass_ended = passes.ended] {
    call->Encode(std::move(work->response), pass_ended, std::move(work->copies), std::move(work->charge));
  };
  // Before the model's pictures that wait to be decoded, because this request has been computed.
  const DecodeQueue::Order order = {.model = deps_.model->name(),
                                    .weight = deps_.model->settings().batching.weight,
                                    .client = request_.client,
                                    .priority = std::numeric_limits<int>::max(),
                                    .deadline = request_.deadline,
                                    .may_replace = false,
                                    .done_in_any_case = true};
  if (!deps_.encode_pool->Schedule(encode, order).ok()) encode();
}

std::function<absl::Status(int64_t bytes)> PredictCall::ChargeBeyondInputs() {
  return [this, charged = input_bytes_](int64_t bytes) mutable {
    if (bytes <= charged) return absl::OkStatus();
    absl::Status taken = ticket_->AddDecodedBytes(bytes - charged);
    if (taken.ok()) charged = bytes;
    return taken;
  };
}

bool PredictCall::EncodesLong(const Response& response) const {
  if (deps_.encode_pool == nullptr) return false;
  // Attention maps become PNG files whatever the model's task is.
  if (response.explanation && response.bytes() > kMaxInlineEncode) return true;
  if (!request_.encodes_maps || response.results.empty()) return false;
  if (!HasMap(response.results.front())) return false;
  int64_t size = std::max(response.bytes(), request_.map_bytes);
  for (const SentItem& sent : response.sent) size = std::max(size, int64_t{sent.width} * sent.height);
  return size > kMaxInlineEncode;
}

void PredictCall::Encode(Response response, absl::Time pass_ended, ShadowCopies copies,
                         std::shared_ptr<const AnswerCharge> charge) {
  absl::Status encoded;
  if (response.still_wanted) encoded = response.still_wanted();
  if (encoded.ok() && request_.encode) encoded = request_.encode(response);
  if (response.still_wanted && absl::IsDeadlineExceeded(encoded))
    encoded = absl::DeadlineExceededError("the deadline passed before the answer was made");
  response.still_wanted = nullptr;
  response.take_memory = nullptr;
  response.mask_pixels = nullptr;
  // Leave() charges the answer.
  charge = nullptr;
  if (!encoded.ok()) {
    // The memory for masks had no room. What else an answer may exceed states no reason.
    if (StatedShedReason(encoded) && !request_.is_copy) CountShed(*deps_.metrics, request_.nested, encoded);
    Finish(encoded, /*computed=*/true);
  } else {
    answer_bytes_ = std::max(answer_bytes_, response.answer_bytes);
    response.timings.encode = deps_.clock->Now() - pass_ended;
    Finish(std::move(response), /*computed=*/true);
  }
  if (!copies.calls.empty()) deps_.model->shadow_sender()->Send(std::move(copies));
}

void PredictCall::Refuse(absl::Status why) {
  if (!request_.is_copy) CountShed(*deps_.metrics, request_.nested, why);
  Finish(std::move(why), /*computed=*/false);
}

void PredictCall::Finish(absl::StatusOr<Response> outcome, bool computed) {
  finished_ = true;
  if (!turn_ || !computed) {
    Leave(std::move(outcome), computed);
    turn_.reset();
    return;
  }
  // The items are not needed while the answer waits for its turn.
  items_.clear();
  turn_->Answer([call = shared_from_this(), outcome = std::move(outcome)]() mutable {
    call->Leave(std::move(outcome), /*computed=*/true);
  });
}

void PredictCall::Leave(absl::StatusOr<Response> outcome, bool computed) {
  const absl::Time ended = deps_.clock->Now();
  const absl::Duration total = ended - request_.arrival;
  if (outcome.ok()) {
    outcome->timings.total = total;
    outcome->charge = ChargeLargeAnswer(*ticket_, answer_bytes_);
  }
  if (outcome.ok() && request_.served != nullptr && !request_.nested)
    request_.served->timings = outcome->timings;
  items_.clear();
  ticket_->ReturnRequest();
  // Counted before it is answered, so that a client that has the answer finds it in the metrics.
  if (!request_.is_copy) {
    deps_.model->metrics()->RecordRequest(
        {.protocol = request_.protocol,
         .code = outcome.status().code(),
         .computed = computed,
         .pictures = request_.size(),
         .timings = outcome.ok() ? outcome->timings : Timings{.total = total},
         .ended = ended,
         .sizes = sent_,
         .sampled = request_.record == nullptr ? SampledSpan{} : request_.record->sampled_span()});
  }
  std::move(done_)(std::move(outcome));
}

}  // namespace saccade::server
