#include "server/pipeline/pipeline.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/decode/prepare.h"

namespace saccade::server {
namespace {

int64_t FloatsPerPicture(const models::ImageInput& input) { return 3 * input.height * input.width; }

absl::Status CheckShape(const TensorInput& tensor, const models::ImageInput& input) {
  const auto& shape = tensor.shape;
  if (shape.size() == 4 && shape[1] == 3 && shape[2] == input.height && shape[3] == input.width) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("input 'image': the shape is [", absl::StrJoin(shape, ","),
                                                 "], expected [n,3,", input.height, ",", input.width, "]"));
}

// What a picture will take once decoded, from its header alone.
absl::StatusOr<int64_t> PixelsOf(const Picture& picture, const DecodeLimits& limits) {
  if (const auto* raw = std::get_if<RawPicture>(&picture)) return int64_t{raw->width} * raw->height;
  auto header = ReadPictureHeader(std::get<EncodedPicture>(picture).data.bytes, limits);
  if (!header.ok()) return header.status();
  return header->pixels();
}

// In the client's words, which picture an error is about.
absl::Status AtPicture(const absl::Status& status, const Request& request, size_t index) {
  return absl::Status(
      status.code(),
      absl::StrCat(std::string(request.input_name), ": ",
                   request.size() == 1 ? "" : absl::StrCat("picture ", index, ": "), status.message()));
}

}  // namespace

void Pipeline::Predict(Request request, PredictDone done) {
  auto model = rooms_.catalog->FindReady(request.model, request.version);
  if (!model.ok()) {
    rooms_.metrics->RecordUnknownModel(request.protocol, model.status().code());
    std::move(done)(model.status());
    return;
  }
  const int64_t bytes = request.bytes();
  auto call = std::make_unique<PredictCall>(std::move(request), std::move(done),
                                            PredictCall::Server{.version = (*model)->version(),
                                                                .description = &(*model)->description(),
                                                                .metrics = (*model)->metrics(),
                                                                .all_metrics = rooms_.metrics,
                                                                .clock = rooms_.clock});
  if (absl::Status status = Check(*call, **model); !status.ok()) {
    call->Reject(status);
    return;
  }
  auto ticket = rooms_.admission->Admit(bytes);
  if (!ticket.ok()) {
    const bool by_bytes = absl::StrContains(ticket.status().message(), "--max-inflight-bytes");
    call->Refuse(ticket.status(), by_bytes ? ShedReason::kBytes : ShedReason::kRequests);
    return;
  }
  call->ticket() = *std::move(ticket);
  if (std::holds_alternative<TensorInput>(call->request().input)) {
    call->MarkPrepared();
    Submit(**model, std::move(call));
  } else {
    Decode(*std::move(model), std::move(call));
  }
}

// What can be known before the request costs anything.
absl::Status Pipeline::Check(const PredictCall& call, const ServedModel& model) const {
  if (const auto* tensor = std::get_if<TensorInput>(&call.request().input)) {
    if (absl::Status shape = CheckShape(*tensor, model.description().input); !shape.ok()) return shape;
  }
  if (call.size() < 1 || call.size() > model.max_batch_size()) {
    return absl::InvalidArgumentError(absl::StrCat("the request holds ", call.size(), " pictures; model '",
                                                   model.name(), "' takes 1 to ", model.max_batch_size(),
                                                   " (its max_batch_size)"));
  }
  return CheckAlive(call, rooms_.clock->Now());
}

void Pipeline::Decode(std::shared_ptr<ServedModel> model, std::unique_ptr<PredictCall> call) {
  // The task holds the call through a shared box, so that a pool that refuses it leaves it here.
  auto box = std::make_shared<std::unique_ptr<PredictCall>>(std::move(call));
  absl::Status scheduled = rooms_.decode_pool->Schedule([this, model = std::move(model), box] {
    std::unique_ptr<PredictCall> decoding = std::move(*box);
    if (absl::Status status = DecodeAll(*model, *decoding); !status.ok()) {
      decoding->Refuse(status, ShedReason::kPixels);
      return;
    }
    decoding->MarkPrepared();
    Submit(*model, std::move(decoding));
  });
  if (!scheduled.ok()) (*box)->Reject(scheduled);
}

absl::Status Pipeline::DecodeAll(const ServedModel& model, PredictCall& call) {
  const auto& pictures = std::get<std::vector<Picture>>(call.request().input);
  const models::ImageInput& input = model.description().input;
  const int64_t floats = FloatsPerPicture(input);
  absl::Span<float> out = call.AllocatePixels(floats);
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (absl::Status alive = CheckAlive(call, rooms_.clock->Now()); !alive.ok()) return alive;
    auto pixels = PixelsOf(pictures[i], rooms_.decode_limits);
    if (!pixels.ok()) return AtPicture(pixels.status(), call.request(), i);
    if (absl::Status taken = call.ticket().AddPixels(*pixels); !taken.ok()) return taken;
    auto size = Prepare(pictures[i], input, rooms_.decode_limits, out.subspan(i * floats, floats));
    if (!size.ok()) return AtPicture(size.status(), call.request(), i);
    call.AddDecoded(*size);
  }
  return absl::OkStatus();
}

void Pipeline::Submit(ServedModel& model, std::unique_ptr<PredictCall> call) {
  std::unique_ptr<BatchTask> task = std::move(call);
  if (absl::Status submitted = model.Submit(task); !submitted.ok()) task->Reject(submitted);
}

void Pipeline::RefreshGauges() {
  const Inflight inflight = rooms_.admission->inflight();
  rooms_.metrics->SetInflight(inflight.requests, inflight.bytes, inflight.pixels);
  for (const ModelSnapshot& snapshot : rooms_.catalog->List()) {
    if (auto model = rooms_.catalog->FindReady(snapshot.name, snapshot.version); model.ok()) {
      (*model)->metrics()->SetPending(snapshot.queued);
    }
  }
}

}  // namespace saccade::server
