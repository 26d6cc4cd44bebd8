#include "server/engine/shadow_copy.h"

#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "server/engine/pass_copies.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

int LowestPriority(const BatcherOptions& options) {
  return options.priority_levels > 0 ? -options.priority_levels : std::numeric_limits<int>::min();
}

// Makes the item own a copy of its pixels: the client may reuse its memory as soon as it has the answer.
void CopyPixels(Item& item) {
  const size_t bytes = item.pixels.size();
  auto room = std::make_unique<float[]>((bytes + sizeof(float) - 1) / sizeof(float));
  item.pixels.CopyTo(reinterpret_cast<char*>(room.get()));
  item.pixels = BytePieces({reinterpret_cast<const char*>(room.get()), bytes});
  item.owned = std::move(room);
}

NamedTensors CopyTensors(const NamedTensors& sent) {
  NamedTensors copy = {.tensors = {}, .rows = sent.rows};
  for (const Tensor& tensor : sent.tensors) {
    auto bytes = std::make_shared<std::string>(tensor.data.size(), '\0');
    tensor.data.CopyTo(bytes->data());
    copy.tensors.push_back(
        {.name = tensor.name, .type = tensor.type, .shape = tensor.shape, .data = BytePieces(*bytes, bytes)});
  }
  return copy;
}

Request RequestOfCopy(const Request& request, const ReadyModel& shadow, absl::Time now) {
  Request copy;
  copy.model = request.model;
  copy.version = shadow.version();
  copy.id = request.id;
  copy.priority = LowestPriority(shadow.settings().batching);
  copy.arrival = now;
  copy.nested = true;
  copy.is_copy = true;
  copy.protocol = "shadow";
  if (const auto* tensors = std::get_if<NamedTensors>(&request.input)) copy.input = CopyTensors(*tensors);
  return copy;
}

// The file of a request with one picture; empty if it was not sent as a file, is too large to be kept, or is
// not wanted.
std::string_view PictureFor(const Shadow& shadow, const Request& request) {
  if (!shadow.wants_pictures()) return {};
  const auto* const pictures = std::get_if<std::vector<Picture>>(&request.input);
  if (pictures == nullptr || pictures->size() != 1) return {};
  const auto* const encoded = std::get_if<EncodedPicture>(&pictures->front());
  if (encoded == nullptr || encoded->data.bytes.size() > Differing::kMaxPictureBytes) return {};
  return encoded->data.bytes;
}

PassTime PassOf(const Response& response) {
  // If several passes computed the request, its time includes waits between them, so it is not timed.
  if (response.passes != 1) return {};
  return {.batch_size = response.batch_size, .took = response.timings.infer - response.timings.core_wait};
}

// Called with the answer to a copy: compares it with the original answer and reports the result to the
// Shadow.
struct Comparing {
  std::shared_ptr<Shadow> shadow;
  std::shared_ptr<ShadowRoom> room;
  Shadow::Original original;
  ComparedAnswer answer;
  Clock* clock;

  void operator()(absl::StatusOr<Response> outcome) const {
    if (!outcome.ok()) return shadow->EndFailed(original, outcome.status(), clock->Now());
    const PassTime pass = PassOf(*outcome);
    shadow->EndAnswered(original, answer,
                        {std::move(outcome->results), std::move(outcome->outputs), answer.is_depth}, pass,
                        clock->Now());
  }
};

// Throws std::bad_alloc.
std::shared_ptr<PredictCall> MakeCopy(const AnsweredRequest& answered, std::shared_ptr<ReadyModel> model,
                                      std::shared_ptr<ShadowRoom> room, const PassTime& pass) {
  const auto& [deps, request, response, items, bucket] = answered;
  const std::shared_ptr<Shadow> shadow = deps.model->shadow();
  const std::string_view picture = PictureFor(*shadow, request);
  for (Item& item : items) {
    if (item.owned == nullptr) CopyPixels(item);
  }
  auto comparing = std::make_shared<Comparing>(Comparing{
      .shadow = shadow,
      .room = std::move(room),
      .original = {.id = request.id,
                   .span = request.record == nullptr ? SampledSpan{} : request.record->sampled_span(),
                   .shadow = model->identity(),
                   .picture = picture.empty() ? nullptr : std::make_shared<const std::string>(picture),
                   .pass = pass},
      .answer = {response.results, response.outputs, deps.model->description().task == models::Task::kDepth},
      .clock = deps.clock});
  Request copy = RequestOfCopy(request, *model, deps.clock->Now());
  auto call = std::make_shared<PredictCall>(
      std::move(copy), [comparing](absl::StatusOr<Response> outcome) { (*comparing)(std::move(outcome)); },
      PredictCall::Deps{.model = std::move(model), .metrics = deps.metrics, .clock = deps.clock});
  call->UseBucket(bucket);
  for (Item& item : items) call->AddItem(std::move(item));
  items.clear();
  for (const SentItem& sent : response.sent) call->AddSent(sent);
  return call;
}

void AddTo(PassCopies& pass, const AnsweredRequest& answered) {
  try {
    pass.Add(MakeCopy(answered, pass.shadow(), pass.room(), pass.Timed(PassOf(answered.response))));
  } catch (const std::bad_alloc&) {
    answered.deps.model->shadow()->Drop(ShadowLoss::kTooLarge);
  }
}

}  // namespace

int64_t BytesOfCopy(const Request& request, absl::Span<const Item> items, const Shadow& shadow) {
  auto bytes = static_cast<int64_t>(PictureFor(shadow, request).size());
  if (std::holds_alternative<NamedTensors>(request.input)) return bytes + request.bytes();
  for (const Item& item : items) bytes += static_cast<int64_t>(item.pixels.size());
  return bytes;
}

ShadowCopies CopyForShadow(const AnsweredRequest& answered, PassCopies* pass) {
  const auto& [deps, request, response, items, bucket] = answered;
  const std::shared_ptr<Shadow> shadow = deps.model->shadow();
  if (shadow == nullptr || request.is_copy) return {};
  if (shadow->copies_passes() && response.passes == 1) {
    if (pass != nullptr) AddTo(*pass, answered);
    return {};
  }
  if (!shadow->Wants(deps.model->has_waiting())) return {};
  auto model = deps.model->FindShadow();
  if (!model.ok()) {
    shadow->Drop(ShadowLoss::kUnavailable);
    return {};
  }
  const int64_t bytes = BytesOfCopy(request, items, *shadow) + response.bytes();
  try {
    auto room = ShadowRoom::Enter(shadow, bytes, /*requests=*/1);
    if (room == nullptr) return {};
    auto call = MakeCopy(answered, *model, std::move(room), PassOf(response));
    return {*std::move(model), {std::move(call)}};
  } catch (const std::bad_alloc&) {
    shadow->Drop(ShadowLoss::kTooLarge);
    return {};
  }
}

}  // namespace saccade::server
