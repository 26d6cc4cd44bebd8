#include "server/protocols/vision_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "saccade/v1/vision.grpc.pb.h"
#include "server/protocols/call_records.h"
#include "server/protocols/log_calls.h"
#include "server/protocols/peer.h"
#include "server/protocols/vision_items.h"
#include "server/protocols/vision_messages.h"
#include "server/protocols/vision_results.h"
#include "server/protocols/vision_versions.h"

namespace saccade::server {
namespace {

// What goes around an answer: its index, its request's id, lengths.
constexpr int64_t kAroundAnswer = 256;
constexpr char kMethod[] = "saccade.v1.Vision/PredictStream";

grpc::ByteBuffer Serialised(const v1::PredictStreamResponse& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

}  // namespace

VisionStream* VisionStream::Start(const Server& server, grpc::CallbackServerContext* context) {
  const std::shared_ptr<VisionStream> stream(new VisionStream(server, context));
  stream->Begin();
  return stream.get();
}

VisionStream::VisionStream(const Server& server, grpc::CallbackServerContext* context)
    : OrderedStream({server.max_requests, server.max_message_bytes}, server.slow_readers, context),
      server_(server) {}

void VisionStream::Take(const std::shared_ptr<Slot>& slot) {
  // Its pictures are pointed into until it is computed.
  const auto message = std::make_shared<v1::PredictStreamRequest>();
  const absl::Time arrival = server_.clock->Now();
  const auto record = RecordOf(server_.pipeline->deps().watch, *context(), kMethod, arrival);
  if (record != nullptr) record->AddReceived(static_cast<int64_t>(slot->received.Length()));
  auto request = ReadRequest(*slot, *message, arrival);
  if (!request.ok()) {
    server_.pipeline->CountMalformed("grpc", request.status().code());
    Answer(slot, message->request(), v1::PredictStreamResponse(), request.status(), record.get());
    return;
  }
  const auto answer = std::make_shared<v1::PredictStreamResponse>();
  request->encode = [this, message, answer](const Response& response) {
    return SetAnswer(response, message->request(), server_.max_message_bytes, answer->mutable_answer(),
                     kAroundAnswer);
  };
  if (record != nullptr) record->Describe(*request);
  request->record = record;
  server_.pipeline->Predict(*std::move(request), [this, stream = shared_from_this(), slot, message, answer,
                                                  record](const absl::StatusOr<Response>& outcome) {
    if (outcome.ok()) SetTimings(outcome->timings, answer->mutable_answer());
    Answer(slot, message->request(), std::move(*answer), outcome, record.get());
  });
}

absl::StatusOr<Request> VisionStream::ReadRequest(Slot& slot, v1::PredictStreamRequest& message,
                                                  absl::Time arrival) const {
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::PredictStreamRequest>::Deserialize(&slot.received, &message);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        "the message is no saccade.v1.PredictStreamRequest: it cannot be parsed; is it made from another "
        "vision.proto?");
  }
  auto timeout = TimeoutOf(message);
  if (!timeout.ok()) return timeout.status();
  auto request = RequestOf(*server_.catalog, message.request());
  if (!request.ok()) return request.status();
  request->client = ClientOfPeer(context()->peer());
  request->arrival = arrival;
  request->deadline = std::min(deadline(), arrival + *timeout);
  request->cancellation = slot.cancellation;
  return request;
}

void VisionStream::Answer(const std::shared_ptr<Slot>& slot, const v1::PredictRequest& request,
                          v1::PredictStreamResponse message, const absl::StatusOr<Response>& outcome,
                          CallRecord* record) {
  message.set_index(slot->index);
  // A longer one was refused for being so.
  if (request.request_id().size() <= kMaxRequestId) message.set_request_id(request.request_id());
  if (!outcome.ok()) SetItemError(outcome.status(), server_.retry_jitter, message.mutable_error());
  EndRecord(record, outcome.status(), [&message] { return message.ByteSizeLong(); });
  LogFault(outcome.status(),
           {.method = kMethod, .model = request.model(), .id = request.request_id(), .record = record},
           *context());
  Send(slot, Serialised(message), outcome.ok() ? outcome->charge : nullptr);
}

}  // namespace saccade::server
