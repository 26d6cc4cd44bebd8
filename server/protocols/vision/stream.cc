#include "server/protocols/vision/stream.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "models/api/text.h"
#include "server/engine/count_shed.h"
#include "server/grpc/message_size.h"
#include "server/grpc/pieces_stream.h"
#include "server/grpc/serialize_message.h"
#include "server/protocols/message_bytes.h"
#include "server/protocols/vision/attest.h"
#include "server/protocols/vision/crops.h"
#include "server/protocols/vision/items.h"
#include "server/protocols/vision/messages.h"
#include "server/protocols/vision/results.h"
#include "server/protocols/vision/versions.h"

namespace saccade::server {
namespace {

// Size of what surrounds an answer: its index, its request's id, lengths.
constexpr int64_t kAroundAnswer = 256;
constexpr char kMethod[] = "saccade.v1.Vision/PredictStream";

// A request with the model and the id of the message `bytes`, without its pictures. Takes no longer if the
// message is large.
v1::PredictStreamRequest NamesOf(const BytePieces& bytes) {
  constexpr uint32_t kRequest = v1::PredictStreamRequest::kRequestFieldNumber << 3 | 2;
  constexpr uint32_t kModel = v1::PredictRequest::kModelFieldNumber << 3 | 2;
  constexpr uint32_t kId = v1::PredictRequest::kRequestIdFieldNumber << 3 | 2;
  constexpr int kMaxFields = 64;
  v1::PredictStreamRequest names;
  PiecesStream stream(bytes);
  google::protobuf::io::CodedInputStream input(&stream);
  uint32_t size = 0;
  if (input.ReadTag() != kRequest || !input.ReadVarint32(&size) || size > INT32_MAX) return names;
  const auto limit = input.PushLimit(static_cast<int>(size));
  for (int field = 0; field < kMaxFields; ++field) {
    const uint32_t tag = input.ReadTag();
    if (tag != kModel && tag != kId) {
      if (tag == 0 || !google::protobuf::internal::WireFormatLite::SkipField(&input, tag)) break;
      continue;
    }
    std::string text;
    if (!input.ReadVarint32(&size) || size > kMaxModelName ||
        !input.ReadString(&text, static_cast<int>(size)) || !models::IsUtf8(text))
      break;
    if (tag == kModel) names.mutable_request()->set_model(text);
    if (tag == kId) names.mutable_request()->set_request_id(text);
  }
  input.PopLimit(limit);
  return names;
}

}  // namespace

// The request's pictures point into the message.
struct VisionStream::Item {
  v1::PredictStreamRequest message;
  v1::PredictStreamResponse answer;
  // Its owner holds what the front charged for the message; `charge` is for what parsing took beyond that.
  BytePieces received;
  ByteCharge charge;
};

void VisionStream::Take(const std::shared_ptr<Slot>& slot, BytePieces received) {
  const CallScope scope(ObserversOf(*server_.pipeline), start(), kMethod, server_.clock->Now());
  scope.AddReceived(received.size());
  const auto item = std::make_shared<Item>();
  item->received = std::move(received);
  auto request = ReadRequest(*slot, scope, *item);
  if (!request.ok()) {
    server_.pipeline->CountMalformed("grpc", request.status().code());
    Answer(slot, *item, v1::PredictStreamResponse(), request.status(), scope);
    return;
  }
  // Refers to the item, which the callback below keeps.
  const VisionCall asked{.message = &item->message.request(),
                         .answer = item->answer.mutable_answer(),
                         .max_bytes = server_.max_message_bytes,
                         .around = kAroundAnswer + AttestationSize(*server_.pipeline)};
  PredictVision(
      server_.pipeline, server_.catalog, *std::move(request), asked,
      [this, stream = shared_from_this(), slot, item, scope](const absl::StatusOr<Response>& outcome) {
        absl::Status attested;
        if (outcome.ok()) {
          attested = Attest(scope, item->message.request(), item->answer.mutable_answer());
          SetTimings(outcome->timings, item->answer.mutable_answer());
        }
        Answer(slot, *item, std::move(item->answer),
               attested.ok() ? outcome : absl::StatusOr<Response>(attested), scope);
      });
}

void VisionStream::Reject(const std::shared_ptr<Slot>& slot, const BytePieces& message,
                          const absl::Status& why) {
  const CallScope scope(ObserversOf(*server_.pipeline), start(), kMethod, server_.clock->Now());
  absl::Status counted = server_.pipeline->CountStreamed(slot->index, scope.client());
  if (counted.ok()) {
    counted = why;
    CountShed(*server_.pipeline->deps().metrics, /*nested=*/false, counted);
  }
  Item item;
  item.message = NamesOf(message);
  Answer(slot, item, v1::PredictStreamResponse(), counted, scope);
}

absl::StatusOr<Request> VisionStream::ReadRequest(const Slot& slot, const CallScope& scope,
                                                  Item& item) const {
  if (absl::Status counted = server_.pipeline->CountStreamed(slot.index, scope.client()); !counted.ok()) {
    item.message = NamesOf(item.received);
    return counted;
  }
  auto charge =
      ParseMessage(item.received, &item.message, server_.pipeline->deps().admission, scope.client());
  if (!charge.ok()) return charge.status();
  item.charge = *std::move(charge);
  const auto timeout = TimeoutOf(item.message);
  if (!timeout.ok()) return timeout.status();
  auto request = RequestOf(*server_.catalog, item.message.request());
  if (!request.ok()) return request.status();
  scope.Describe(*request);
  request->deadline = std::min(scope.deadline(), scope.arrival() + *timeout);
  request->charged_bytes = static_cast<int64_t>(item.received.size());
  request->cancellation = slot.cancellation;
  return request;
}

void VisionStream::Answer(const std::shared_ptr<Slot>& slot, const Item& item,
                          v1::PredictStreamResponse message, const absl::StatusOr<Response>& outcome,
                          const CallScope& scope) {
  const v1::PredictRequest& request = item.message.request();
  message.set_index(slot->index);
  // A longer id was an error.
  if (request.request_id().size() <= kMaxRequestId) message.set_request_id(request.request_id());
  if (!outcome.ok()) SetItemError(outcome.status(), server_.retry_jitter, message.mutable_error());
  BytePieces answer = SerializeMessage(message, outcome.ok() ? outcome->charge : nullptr);
  scope.End(outcome.status(), item.received, answer, request.model(), request.request_id());
  Send(slot, std::move(answer));
}

}  // namespace saccade::server
