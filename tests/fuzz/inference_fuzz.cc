// Fuzzes a ModelInferRequest as received, including the pictures in it. The first byte of the input is the
// size of the pieces.
#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "inference/grpc_service.pb.h"
#include "server/grpc/testing/pieces.h"
#include "server/inference/picture_inputs.h"
#include "server/inference/task_outputs.h"
#include "server/protocols/inference/messages.h"
#include "server/protocols/inference/request.h"
#include "server/shared_memory/shared_memory.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/requests.h"

namespace saccade::fuzz {
namespace {

const server::SharedMemory kNoSharing({});

// Parses versions like a catalog without version labels.
absl::StatusOr<int64_t> VersionOf(absl::string_view /*model*/, absl::string_view version) {
  int64_t number = 0;
  if (version.empty() || absl::SimpleAtoi(version, &number)) return number;
  return absl::InvalidArgumentError("version: expected a number");
}

// Checks that the fields parsed by hand and those left to protobuf are what protobuf parses.
void CheckAgrees(const server::InferenceRequest& received, inference::ModelInferRequest expected) {
  Check(received.raw_count == expected.raw_input_contents_size(), "raw contents are counted");
  Check(std::min(received.raw_count, server::InferenceRequest::kMaxRaws) ==
            static_cast<int64_t>(received.raws.size()),
        "raw contents are kept");
  for (size_t i = 0; i < received.raws.size(); ++i) {
    std::string raw(received.raws[i].size(), '\0');
    received.raws[i].CopyTo(raw.data());
    Check(raw == expected.raw_input_contents(static_cast<int>(i)),
          "raw contents are where protobuf finds them");
  }
  expected.clear_raw_input_contents();
  // Compares sizes, because maps are serialised in any order and a NaN is not equal to itself.
  Check(received.fields.ByteSizeLong() == expected.ByteSizeLong(), "all other fields are protobuf's");
}

void CheckCall(const server::TensorCall& call) {
  for (const server::Tensor& input : call.inputs) {
    for (const std::string_view piece : input.data.pieces()) Touch(piece);
  }
  const auto pictures = server::PicturesOf(call);
  if (!pictures.ok()) return CheckRefusal(pictures.status());
  Touch(pictures->input);
  Check(pictures->views >= 1, "an item has a picture");
  ForEachTask([&call](const models::Description& model) {
    for (const server::ItemsForm form : {server::ItemsForm::kPadded, server::ItemsForm::kFlat}) {
      const absl::Status checked = server::CheckOutputs(call.outputs, model, form);
      if (!checked.ok()) CheckRefusal(checked);
    }
  });
}

// Reads the bytes, in pieces of at most `max`. False if they cannot be parsed.
bool Handle(const std::string& bytes, size_t max, server::InferenceRequest& received) {
  const Costs costs(bytes.size());
  const absl::Status read = server::ReadInferenceRequest(server::testing::InPieces(bytes, max), received);
  if (!read.ok()) {
    CheckRefusal(read);
    return false;
  }
  const auto call =
      server::FromMessage(received, kNoSharing, VersionOf, absl::UnixEpoch(), absl::InfiniteFuture());
  if (call.ok()) {
    CheckCall(*call);
  } else {
    CheckRefusal(call.status());
  }
  return true;
}

}  // namespace
}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using saccade::fuzz::Check;
  saccade::fuzz::QuietProtobuf();
  if (size == 0) return 0;
  const std::string bytes(saccade::fuzz::AsText(data + 1, size - 1));
  saccade::server::InferenceRequest received;
  const bool is_read = saccade::fuzz::Handle(bytes, std::max<size_t>(1, data[0]), received);
  // Apart, because protobuf's parser by itself reserves memory for lengths that are wrong.
  inference::ModelInferRequest expected;
  Check(is_read == expected.ParseFromString(bytes), "a message is what protobuf takes");
  if (is_read) saccade::fuzz::CheckAgrees(received, std::move(expected));
  return 0;
}
