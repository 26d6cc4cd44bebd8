#include "server/protocols/vision/attest.h"

#include <google/protobuf/util/json_util.h>

#include <string>
#include <utility>
#include <vector>

#include "server/attestation/attester.h"
#include "server/attestation/digest.h"

namespace saccade::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Whether messages of the type can hold fields of type bytes. Those of requests do not contain their own
// type.
bool HasBytes(const Descriptor& type) {  // NOLINT(misc-no-recursion)
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.type() == FieldDescriptor::TYPE_BYTES) return true;
    if (field.message_type() != nullptr && HasBytes(*field.message_type())) return true;
  }
  return false;
}

// Copies a request without its inputs, and digests those.
class RequestCopy {
 public:
  explicit RequestCopy(absl::string_view file) : file_(file) {}

  // Copies the fields that are set, in the order of their numbers; those of type bytes become empty. Returns
  // false for a message with both bytes and lists of scalars, which requests do not have.
  bool Copy(const Message& from, Message* to) {  // NOLINT(misc-no-recursion)
    std::vector<const FieldDescriptor*> fields;
    from.GetReflection()->ListFields(from, &fields);
    for (const FieldDescriptor* field : fields) {
      const bool copied =
          field->message_type() != nullptr ? CopyMessages(from, field, to) : CopyScalar(from, field, to);
      if (!copied) return false;
    }
    return true;
  }

  std::vector<std::string> TakeDigests() { return std::move(digests_); }

 private:
  bool CopyMessages(const Message& from, const FieldDescriptor* field,
                    Message* to) {  // NOLINT(misc-no-recursion)
    const Reflection& reading = *from.GetReflection();
    const Reflection& writing = *to->GetReflection();
    if (!field->is_repeated())
      return CopyMessage(reading.GetMessage(from, field), writing.MutableMessage(to, field));
    for (int i = 0; i < reading.FieldSize(from, field); ++i) {
      if (!CopyMessage(reading.GetRepeatedMessage(from, field, i), writing.AddMessage(to, field)))
        return false;
    }
    return true;
  }

  bool CopyMessage(const Message& from, Message* to) {  // NOLINT(misc-no-recursion)
    if (HasBytes(*from.GetDescriptor())) return Copy(from, to);
    to->CopyFrom(from);
    return true;
  }

  bool CopyScalar(const Message& from, const FieldDescriptor* field, Message* to) {
    if (field->is_repeated()) return false;
    const Reflection& reading = *from.GetReflection();
    const Reflection& writing = *to->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string scratch;
        const std::string& text = reading.GetStringReference(from, field, &scratch);
        const bool is_input = field->type() == FieldDescriptor::TYPE_BYTES;
        if (is_input) digests_.push_back(DigestHex(text.empty() ? file_ : absl::string_view(text)));
        writing.SetString(to, field, is_input ? "" : text);
        return true;
      }
      case FieldDescriptor::CPPTYPE_INT32:
        writing.SetInt32(to, field, reading.GetInt32(from, field));
        return true;
      case FieldDescriptor::CPPTYPE_INT64:
        writing.SetInt64(to, field, reading.GetInt64(from, field));
        return true;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        writing.SetDouble(to, field, reading.GetDouble(from, field));
        return true;
      case FieldDescriptor::CPPTYPE_ENUM:
        writing.SetEnumValue(to, field, reading.GetEnumValue(from, field));
        return true;
      default:
        return false;
    }
  }

  const absl::string_view file_;
  std::vector<std::string> digests_;
};

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
  const std::string digest = DigestHex(answer->SerializeAsString());
  answer->set_allocated_model(beside.release_model());
  answer->set_version(beside.version());
  answer->set_allocated_request_id(beside.release_request_id());
  answer->set_batch_size(beside.batch_size());
  return digest;
}

absl::Status SetRequest(const v1::PredictRequest& request, absl::string_view file, AttestedCall* call) {
  v1::PredictRequest described;
  RequestCopy copy(file);
  if (!copy.Copy(request, &described))
    return absl::InternalError("the server cannot describe such a request in a statement");
  // They select the model, which the statement names, and when it computes.
  described.clear_model();
  described.clear_version();
  described.clear_version_label();
  described.clear_request_id();
  described.clear_priority();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(described, &call->request, options).ok())
    return absl::InternalError("the request cannot be written as JSON in a statement");
  call->inputs_sha256 = copy.TakeDigests();
  return absl::OkStatus();
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
  if (absl::Status set = SetRequest(request, file, &call); !set.ok()) return set;
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
