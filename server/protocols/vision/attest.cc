#include "server/protocols/vision/attest.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/attestation/attester.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Writes a request as protobuf's JSON without its inputs, and digests those. Protobuf's own writer would take
// longer than the signature, because it looks up all types for each message.
class RequestWriter {
 public:
  // `file` is the input if the field of type bytes is empty.
  explicit RequestWriter(absl::string_view file) : file_(file) {}

  // The fields that are set, in the order of their numbers, but those in `left_out`.
  void Write(const Message& message, absl::Span<const int> left_out = {}) {  // NOLINT(misc-no-recursion)
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    text_ += '{';
    for (const FieldDescriptor* field : fields) {
      if (absl::c_linear_search(left_out, field->number())) continue;
      if (text_.back() != '{') text_ += ',';
      absl::StrAppend(&text_, "\"", field->name(), "\":");
      if (!field->is_repeated()) {
        WriteValue(message, field, -1);
        continue;
      }
      text_ += '[';
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        if (i > 0) text_ += ',';
        WriteValue(message, field, i);
      }
      text_ += ']';
    }
    text_ += '}';
  }

  std::string TakeText() { return std::move(text_); }
  std::vector<std::string> TakeDigests() { return std::move(digests_); }

 private:
  // `index` is negative for a field that is not a list.
  void WriteValue(const Message& message, const FieldDescriptor* field,
                  int index) {  // NOLINT(misc-no-recursion)
    const Reflection& r = *message.GetReflection();
    const bool one = index < 0;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Write(one ? r.GetMessage(message, field) : r.GetRepeatedMessage(message, field, index));
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string scratch;
        const std::string& text = one ? r.GetStringReference(message, field, &scratch)
                                      : r.GetRepeatedStringReference(message, field, index, &scratch);
        const bool is_input = field->type() == FieldDescriptor::TYPE_BYTES;
        if (is_input) digests_.push_back(Sha256Hex(text.empty() ? file_ : absl::string_view(text)));
        text_ += JsonText(is_input ? absl::string_view() : absl::string_view(text));
        return;
      }
      case FieldDescriptor::CPPTYPE_INT32:
        absl::StrAppend(&text_, one ? r.GetInt32(message, field) : r.GetRepeatedInt32(message, field, index));
        return;
      case FieldDescriptor::CPPTYPE_UINT32:
        absl::StrAppend(&text_,
                        one ? r.GetUInt32(message, field) : r.GetRepeatedUInt32(message, field, index));
        return;
      case FieldDescriptor::CPPTYPE_INT64:
        absl::StrAppend(&text_, "\"",
                        one ? r.GetInt64(message, field) : r.GetRepeatedInt64(message, field, index), "\"");
        return;
      case FieldDescriptor::CPPTYPE_UINT64:
        absl::StrAppend(&text_, "\"",
                        one ? r.GetUInt64(message, field) : r.GetRepeatedUInt64(message, field, index), "\"");
        return;
      case FieldDescriptor::CPPTYPE_FLOAT:
        return WriteNumber(one ? r.GetFloat(message, field) : r.GetRepeatedFloat(message, field, index));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return WriteNumber(one ? r.GetDouble(message, field) : r.GetRepeatedDouble(message, field, index));
      case FieldDescriptor::CPPTYPE_BOOL:
        text_ +=
            (one ? r.GetBool(message, field) : r.GetRepeatedBool(message, field, index)) ? "true" : "false";
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        return WriteEnum(
            *field, one ? r.GetEnumValue(message, field) : r.GetRepeatedEnumValue(message, field, index));
    }
  }

  // The shortest text that parses to the same number.
  template <typename T>
  void WriteNumber(T value) {
    if (std::isnan(value)) return text_.append("\"NaN\""), void();
    if (std::isinf(value)) return text_.append(value < 0 ? "\"-Infinity\"" : "\"Infinity\""), void();
    std::array<char, 40> text;
    text_.append(text.data(), std::to_chars(text.begin(), text.end(), value).ptr);
  }

  void WriteEnum(const FieldDescriptor& field, int number) {
    const auto* const value = field.enum_type()->FindValueByNumber(number);
    if (value == nullptr) {
      absl::StrAppend(&text_, number);
    } else {
      absl::StrAppend(&text_, "\"", value->name(), "\"");
    }
  }

  const absl::string_view file_;
  std::string text_;
  std::vector<std::string> digests_;
};

// Digests what is written to it. A message that is serialised into a string first would take its own size of
// memory, which is not charged.
class DigestStream final : public google::protobuf::io::CopyingOutputStream {
 public:
  bool Write(const void* bytes, int size) override {
    digest_.Add({static_cast<const char*>(bytes), static_cast<size_t>(size)});
    return true;
  }
  std::string Hex() { return digest_.Hex(); }

 private:
  Sha256Digest digest_;
};

// Empty if memory was short.
std::string DigestOf(const Message& message) {
  DigestStream digest;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&digest);
    if (!message.SerializeToZeroCopyStream(&stream)) return "";
  }
  return digest.Hex();
}

// Digests the answer without the fields that differ from call to call or are stated beside its digest. Moves
// them out and back, because a result can be large.
std::string AnswerDigest(v1::PredictResponse* answer) {
  v1::PredictResponse beside;
  beside.set_allocated_model(answer->release_model());
  beside.set_version(answer->version());
  beside.set_allocated_request_id(answer->release_request_id());
  beside.set_batch_size(answer->batch_size());
  answer->clear_version();
  answer->clear_batch_size();
  answer->clear_timings();
  const std::string digest = DigestOf(*answer);
  answer->set_allocated_model(beside.release_model());
  answer->set_version(beside.version());
  answer->set_allocated_request_id(beside.release_request_id());
  answer->set_batch_size(beside.batch_size());
  return digest;
}

}  // namespace

int64_t AttestationSize(const Pipeline& pipeline) {
  return pipeline.deps().attester != nullptr ? static_cast<int64_t>(kMaxAttestation) : 0;
}

absl::Status Attest(const CallScope& scope, const v1::PredictRequest& request, v1::PredictResponse* answer,
                    absl::string_view file) {
  const Attester* const attester = scope.attester();
  if (attester == nullptr) return absl::OkStatus();
  AttestedCall call{.protocol = "saccade.v1", .model = request.model()};
  using Asked = v1::PredictRequest;
  // They select the model, which the statement names, and when it computes.
  constexpr int kLeftOut[] = {Asked::kModelFieldNumber, Asked::kVersionFieldNumber,
                              Asked::kVersionLabelFieldNumber, Asked::kRequestIdFieldNumber,
                              Asked::kPriorityFieldNumber};
  RequestWriter writer(file);
  writer.Write(request, kLeftOut);
  call.request = writer.TakeText();
  call.inputs_sha256 = writer.TakeDigests();
  call.answer_sha256 = AnswerDigest(answer);
  auto attested = attester->Attest(call, scope.served());
  if (!attested.ok()) return attested.status();
  v1::Attestation& message = *answer->mutable_attestation();
  message.set_statement(std::move(attested->statement));
  message.set_signature(std::move(attested->signature));
  message.set_public_key(std::move(attested->public_key));
  return absl::OkStatus();
}

}  // namespace saccade::server
