// Fuzzes a PredictRequest of the typed API.
#include "saccade/v1/vision.pb.h"
#include "server/protocols/vision/messages.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/requests.h"

namespace saccade::fuzz {
namespace {

void CheckRequest(const server::Request& request) {
  Touch(request.input);
  Check(request.size() >= 0 && request.bytes() >= 0 && request.views >= 1, "a request has a size");
  ForEachTask([&request](const models::Description& model) {
    const absl::Status accepted = request.accepts(model);
    if (!accepted.ok()) CheckRefusal(accepted);
  });
}

}  // namespace
}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  saccade::fuzz::QuietProtobuf();
  saccade::v1::PredictRequest message;
  // gRPC rejects messages that cannot be parsed.
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto request = saccade::server::FromMessage(message);
  if (request.ok()) {
    saccade::fuzz::CheckRequest(*request);
  } else {
    saccade::fuzz::CheckRefusal(request.status());
  }
  return 0;
}
