#include "server/protocols/vision/json.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/json_text.h"

namespace saccade::server {
namespace {

// Memory that a value of the message takes beside the bytes of a string.
constexpr size_t kValueBytes = 128;
// Memory that protobuf's parser takes meanwhile, as a multiple of the text. parse_memory_test.cc measures
// both.
constexpr size_t kParserFactor = 3;

absl::StatusOr<ByteCharge> Charge(ByteLedger* ledger, absl::string_view client, size_t bytes) {
  if (ledger == nullptr) return ByteCharge();
  return ledger->Charge(client, static_cast<int64_t>(bytes));
}

absl::Status CheckCompressedValues(size_t values, size_t compressed_bytes) {
  const size_t max = std::max(kMaxCompressedJsonValues, compressed_bytes);
  if (values <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the JSON has about ", values, " values, more than the ",
                                                 max, " that ", compressed_bytes,
                                                 " compressed bytes may have; send it uncompressed"));
}

// The parser repeats what it was sent.
constexpr size_t kMaxWhy = 512;

absl::Status NoRequest(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the body is not a saccade.v1.PredictRequest in JSON: ", why.substr(0, kMaxWhy)));
}

}  // namespace

absl::StatusOr<ByteCharge> PredictRequestFromJson(absl::string_view text, v1::PredictRequest* request,
                                                  ByteLedger* ledger, absl::string_view client,
                                                  std::optional<size_t> compressed_bytes) {
  const size_t values = MaxJsonValuesIn(text);
  absl::Status few = CheckJsonValues(values);
  if (few.ok() && compressed_bytes) few = CheckCompressedValues(values, *compressed_bytes);
  if (!few.ok()) return NoRequest(few.message());
  auto of_message = Charge(ledger, client, text.size() + kValueBytes * values);
  if (!of_message.ok()) return of_message;
  const auto of_parser = Charge(ledger, client, kParserFactor * text.size());
  if (!of_parser.ok()) return of_parser.status();
  const auto status = google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, request);
  if (status.ok()) return of_message;
  const auto why = status.message();
  return NoRequest({why.data(), why.size()});
}

absl::StatusOr<std::string> ToProtobufJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) {
    const auto why = status.message();
    return absl::InternalError(
        absl::StrCat("the answer cannot be written as JSON: ", absl::string_view(why.data(), why.size())));
  }
  return json;
}

}  // namespace saccade::server
