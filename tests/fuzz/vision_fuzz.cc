// Fuzzes a PredictRequest of the typed API.
#include "saccade/v1/vision.pb.h"
#include "server/grpc/testing/pieces.h"
#include "server/protocols/message_bytes.h"
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

// False if the bytes cannot be parsed.
bool Handle(const std::string& bytes) {
  const Costs costs(bytes.size());
  v1::PredictRequest message;
  const auto parsed = server::ParseMessage(server::testing::InPieces(bytes, 1000), &message);
  if (!parsed.ok()) {
    CheckRefusal(parsed.status());
    return false;
  }
  const auto request = server::FromMessage(message);
  if (request.ok()) {
    CheckRequest(*request);
  } else {
    CheckRefusal(request.status());
  }
  return true;
}

}  // namespace
}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  saccade::fuzz::QuietProtobuf();
  const std::string bytes(saccade::fuzz::AsText(data, size));
  const bool is_parsed = saccade::fuzz::Handle(bytes);
  // Apart, because protobuf's parser by itself reserves memory for lengths that are wrong.
  saccade::v1::PredictRequest expected;
  saccade::fuzz::Check(is_parsed == expected.ParseFromString(bytes), "a message is what protobuf takes");
  return 0;
}
