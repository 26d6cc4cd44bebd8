#include "server/engine/shadow_copy.h"

#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

int64_t CopiedBytes(const Request& request, const std::vector<Item>& items) {
  if (std::holds_alternative<NamedTensors>(request.input)) return request.bytes();
  int64_t bytes = 0;
  for (const Item& item : items) bytes += static_cast<int64_t>(item.pixels.size());
  return bytes;
}

int LowestPriority(const BatcherOptions& options) {
  return options.priority_levels > 0 ? -options.priority_levels : std::numeric_limits<int>::min();
}

// The client may reuse its memory as soon as it is answered.
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

// The file of a request with one picture; empty if it was not sent as a file, or is too large to be kept.
std::string_view PictureOf(const Request& request) {
  const auto* const pictures = std::get_if<std::vector<Picture>>(&request.input);
  if (pictures == nullptr || pictures->size() != 1) return {};
  const auto* const encoded = std::get_if<EncodedPicture>(&pictures->front());
  if (encoded == nullptr || encoded->data.bytes.size() > Differing::kMaxPictureBytes) return {};
  return encoded->data.bytes;
}

PassTime PassOf(const Response& response) {
  // Several passes may wait for each other.
  if (response.passes != 1) return {};
  return {.batch_size = response.batch_size, .took = response.timings.infer - response.timings.core_wait};
}

// A copy's room, from Shadow::Enter() to the end of its call.
class Room {
 public:
  Room(std::shared_ptr<Shadow> shadow, int64_t bytes) : shadow_(std::move(shadow)), bytes_(bytes) {}
  ~Room() { shadow_->Leave(bytes_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

 private:
  const std::shared_ptr<Shadow> shadow_;
  const int64_t bytes_;
};

// What the answer to a copy is compared with, and who is told.
struct Comparing {
  std::shared_ptr<Shadow> shadow;
  std::unique_ptr<Room> room;
  Shadow::Original original;
  ComparedAnswer answer;
  Clock* clock;

  void operator()(absl::StatusOr<Response> outcome) const {
    if (!outcome.ok()) return shadow->EndFailed(original, outcome.status(), clock->Now());
    const PassTime pass = PassOf(*outcome);
    shadow->EndAnswered(original, answer, {std::move(outcome->results), std::move(outcome->outputs)}, pass,
                        clock->Now());
  }
};

// Throws std::bad_alloc.
std::shared_ptr<PredictCall> MakeCopy(const PredictCall::Deps& deps, std::shared_ptr<ReadyModel> model,
                                      std::unique_ptr<Room> room, const Request& request,
                                      const Response& response, std::string_view picture,
                                      std::vector<Item>& items, int64_t bucket) {
  for (Item& item : items) {
    if (item.owned == nullptr) CopyPixels(item);
  }
  auto comparing = std::make_shared<Comparing>(Comparing{
      .shadow = deps.model->shadow(),
      .room = std::move(room),
      .original = {.id = request.id,
                   .span = request.record == nullptr ? SampledSpan{} : request.record->sampled_span(),
                   .shadow = model->identity(),
                   .picture = picture.empty() ? nullptr : std::make_shared<const std::string>(picture),
                   .pass = PassOf(response)},
      .answer = {response.results, response.outputs},
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

}  // namespace

ShadowCopy CopyForShadow(const PredictCall::Deps& deps, const Request& request, const Response& response,
                         std::vector<Item>& items, int64_t bucket) {
  const std::shared_ptr<Shadow> shadow = deps.model->shadow();
  if (shadow == nullptr || request.is_copy || !shadow->Wants(deps.model->has_waiting())) return {};
  auto model = deps.model->FindShadow();
  if (!model.ok()) {
    shadow->Drop(ShadowLoss::kUnavailable);
    return {};
  }
  const std::string_view picture = shadow->wants_pictures() ? PictureOf(request) : std::string_view();
  const int64_t bytes = CopiedBytes(request, items) + response.bytes() + static_cast<int64_t>(picture.size());
  if (!shadow->Enter(bytes)) return {};
  try {
    auto room = std::make_unique<Room>(shadow, bytes);
    auto call = MakeCopy(deps, *model, std::move(room), request, response, picture, items, bucket);
    return {*std::move(model), std::move(call)};
  } catch (const std::bad_alloc&) {
    shadow->Drop(ShadowLoss::kTooLarge);
    return {};
  }
}

}  // namespace saccade::server
