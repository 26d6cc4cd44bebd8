#include "server/protocols/inference/request.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "server/grpc/message_size.h"
#include "server/grpc/pieces_stream.h"
#include "server/protocols/input_method.h"
#include "server/protocols/message_bytes.h"

namespace saccade::server {
namespace {

using Message = inference::ModelInferRequest;

absl::Status NoMessage(absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the message is not a valid inference.ModelInferRequest: ", problem, "; check the client"));
}

// Protobuf's wire format, as far as needed to separate the fields.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

constexpr uint32_t kRawTag = Message::kRawInputContentsFieldNumber << 3 | kLength;

// Larger messages are copied into a capture on a pool.
constexpr size_t kMaxCopiedHere = size_t{1} << 20;

// Maximum length of a 32-bit varint.
constexpr size_t kMaxVarint32Bytes = 5;

// Splits a message's bytes into raw_input_contents and all other fields, in order.
class Splitter {
 public:
  // Splits `request.received`.
  explicit Splitter(InferenceRequest& request) : reader_(request.received), request_(request) {
    rest_.set_compressed_size(request.received.compressed_size());
  }

  // An error if there are more than `max_fields` fields, or more than MaxParts() allows. By default the bound
  // is one that no valid request reaches; reading all that a message may have could take seconds.
  absl::Status Split(int64_t max_fields = kMaxNestedMessages) {
    max_fields = MaxParts(request_.received, max_fields);
    int64_t fields = 0;
    while (!reader_.done()) {
      if (++fields > max_fields) return TooManyFields(max_fields);
      const PieceReader field = reader_;
      const auto tag = Tag();
      if (!tag) return NoMessage("a field's tag is invalid");
      const auto is_ours = groups_ == 0 && tag->value == kRawTag;
      if (!is_ours) reader_ = field;
      if (!(is_ours ? ReadRaw() : Pass(*tag))) return NoMessage("it ends within a field");
    }
    return absl::OkStatus();
  }

  // The other fields. They have the compressed_size() of the whole message.
  const BytePieces& rest() const { return rest_; }

 private:
  absl::Status TooManyFields(int64_t max) const {
    if (const auto compressed = request_.received.compressed_size())
      return TooManyCompressedParts(*Message::descriptor(), *compressed, max, "fields");
    return NoMessage(absl::StrCat("it has more than ", max, " fields"));
  }

  struct Number {
    uint64_t value = 0;
    size_t bytes = 0;  // length of the encoded number
  };

  std::optional<Number> Varint() {
    Number number;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view next = reader_.Next(1);
      if (next.empty()) return std::nullopt;
      const auto byte = static_cast<uint8_t>(next[0]);
      number.value |= uint64_t{byte & 0x7FU} << shift;
      ++number.bytes;
      if (byte < 0x80) return number;
    }
    return std::nullopt;
  }

  // Like protobuf's parser, accepts at most five bytes and keeps 32 of their 35 bits.
  std::optional<Number> Tag() {
    auto tag = Varint();
    if (!tag || tag->bytes > kMaxVarint32Bytes) return std::nullopt;
    tag->value &= std::numeric_limits<uint32_t>::max();
    return tag;
  }

  // Reads what follows the tag of raw_input_contents.
  bool ReadRaw() {
    const auto length = Varint();
    if (!length || length->bytes > kMaxVarint32Bytes) return false;
    BytePieces later;
    const bool keep = request_.raw_count++ < InferenceRequest::kMaxRaws;
    return reader_.Take(length->value, keep ? request_.raws.emplace_back() : later);
  }

  bool PassVarint() {
    const PieceReader begin = reader_;
    const auto number = Varint();
    reader_ = begin;
    return number && reader_.Take(number->bytes, rest_);
  }

  bool PassLength() {
    const PieceReader begin = reader_;
    const auto length = Varint();
    reader_ = begin;
    return length && reader_.Take(length->bytes, rest_) && reader_.Take(length->value, rest_);
  }

  // Copies a whole field from its tag on; protobuf's parser validates it later.
  bool Pass(const Number& tag) {
    reader_.Take(tag.bytes, rest_);
    switch (tag.value & 7) {
      case kVarint:
        return PassVarint();
      case kFixed64:
        return reader_.Take(8, rest_);
      case kFixed32:
        return reader_.Take(4, rest_);
      case kLength:
        return PassLength();
      case kGroup:
        ++groups_;
        return true;
      case kEndGroup:
        // A surplus end tag is an error, which protobuf's parser reports.
        groups_ = std::max<int64_t>(0, groups_ - 1);
        return true;
      default:
        return true;
    }
  }

  PieceReader reader_;
  InferenceRequest& request_;
  BytePieces rest_;
  // The number of open groups. Only unknown fields are groups, so nothing within one is raw_input_contents.
  int64_t groups_ = 0;
};

// What the tensors of a message may be, found out without parsing the message. If that is not clear from the
// first fields, they may be everything.
class TensorForms {
 public:
  explicit TensorForms(const BytePieces& message) : bytes_(message), input_(&bytes_) {
    if (ReadMessage()) return;
    may_have_elements_ = true;
    may_be_shared_ = true;
  }

  // Whether an input may have the type BYTES.
  bool may_have_elements() const { return may_have_elements_; }
  // Whether an input or an output may be in shared memory.
  bool may_be_shared() const { return may_be_shared_; }

 private:
  using Input = Message::InferInputTensor;
  using Output = Message::InferRequestedOutputTensor;

  static constexpr int kMaxFields = 1024;

  static constexpr uint32_t TagOf(int field) { return static_cast<uint32_t>(field) << 3 | kLength; }

  // All of these return false if the bytes are not valid, or have too many fields.
  bool ReadMessage() {
    return EachField([this](uint32_t tag) {
      if (tag == TagOf(Message::kInputsFieldNumber))
        return Nested([this](uint32_t of) { return ReadInput(of); });
      if (tag == TagOf(Message::kOutputsFieldNumber))
        return Nested([this](uint32_t of) { return ReadOutput(of); });
      return Skip(tag);
    });
  }

  bool ReadInput(uint32_t tag) {
    if (tag == TagOf(Input::kDatatypeFieldNumber)) return Find("BYTES", may_have_elements_);
    return tag == TagOf(Input::kParametersFieldNumber) ? ReadParameter() : Skip(tag);
  }

  bool ReadOutput(uint32_t tag) {
    return tag == TagOf(Output::kParametersFieldNumber) ? ReadParameter() : Skip(tag);
  }

  // Reads an entry of a map, whose key is field 1.
  bool ReadParameter() {
    return Nested([this](uint32_t of) {
      return of == TagOf(1) ? Find("shared_memory_region", may_be_shared_) : Skip(of);
    });
  }

  bool EachField(absl::FunctionRef<bool(uint32_t)> read) {
    while (const uint32_t tag = input_.ReadTag()) {
      if (++fields_ > kMaxFields || !read(tag)) return false;
    }
    return input_.ConsumedEntireMessage();
  }

  bool Nested(absl::FunctionRef<bool(uint32_t)> read) {
    uint32_t size = 0;
    if (!input_.ReadVarint32(&size)) return false;
    const auto outer = input_.PushLimit(static_cast<int>(size));
    const bool is_read = EachField(read);
    input_.PopLimit(outer);
    return is_read;
  }

  // Sets `found` if the next string is `text`.
  bool Find(absl::string_view text, bool& found) {
    uint32_t size = 0;
    if (!input_.ReadVarint32(&size)) return false;
    if (size != text.size()) return input_.Skip(static_cast<int>(size));
    std::string string;
    if (!input_.ReadString(&string, static_cast<int>(size))) return false;
    found = found || string == text;
    return true;
  }

  bool Skip(uint32_t tag) { return google::protobuf::internal::WireFormatLite::SkipField(&input_, tag); }

  PiecesStream bytes_;
  google::protobuf::io::CodedInputStream input_;
  int fields_ = 0;
  bool may_have_elements_ = false;
  bool may_be_shared_ = false;
};

}  // namespace

absl::Status ReadInferenceRequest(BytePieces bytes, InferenceRequest& request, ByteLedger* ledger,
                                  absl::string_view client) {
  request.received = std::move(bytes);
  Splitter splitter(request);
  if (absl::Status split = splitter.Split(); !split.ok()) return split;
  auto charge = ParseMessage(splitter.rest(), &request.fields, ledger, client);
  if (!charge.ok()) return charge.status();
  request.charge = *std::move(charge);
  return absl::OkStatus();
}

size_t BytesToRead(const BytePieces& message, bool may_share, bool is_captured) {
  if (is_captured && message.size() > kMaxCopiedHere) return message.size();
  if (!may_share && message.size() <= kMaxBytesParsedHere) return message.size();
  constexpr int64_t kFirstFields = 64;
  InferenceRequest first;
  first.received = message;
  Splitter splitter(first);
  if (!splitter.Split(kFirstFields).ok()) return may_share ? SIZE_MAX : message.size();
  const TensorForms forms(splitter.rest());
  if (may_share && forms.may_be_shared()) return SIZE_MAX;
  return forms.may_have_elements() ? message.size() : splitter.rest().size();
}

inference::ModelInferRequest NamesOf(const BytePieces& message) {
  constexpr uint32_t kMaxNamed = Message::kIdFieldNumber << 3 | kLength;
  constexpr int kMaxBytes = 4096;
  int end = 0;
  {
    PiecesStream bytes(message);
    google::protobuf::io::CodedInputStream input(&bytes);
    uint32_t size = 0;
    for (uint32_t tag = input.ReadTag(); tag != 0 && tag <= kMaxNamed && (tag & 7) == kLength;
         tag = input.ReadTag()) {
      if (!input.ReadVarint32(&size) || size > kMaxBytes || !input.Skip(static_cast<int>(size))) break;
      if (input.CurrentPosition() > kMaxBytes) break;
      end = input.CurrentPosition();
    }
  }
  Message names;
  PiecesStream bytes(message);
  if (!names.ParseFromBoundedZeroCopyStream(&bytes, end)) names.Clear();
  return names;
}

}  // namespace saccade::server
