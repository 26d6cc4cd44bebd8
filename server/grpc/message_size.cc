#include "server/grpc/message_size.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "server/grpc/pieces_stream.h"

namespace saccade::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Protobuf's parser refuses deeper messages.
constexpr int kMaxDepth = 100;

// What objects take beside their contents: a message of our protocols or a map's entry, a string, an unknown
// field. Measured by the test.
constexpr int64_t kMessageBytes = 192;
constexpr int64_t kStringBytes = 48;
constexpr int64_t kUnknownBytes = 48;
// Repeated fields grow by doubling.
constexpr int64_t kSpareFactor = 2;

class Estimate {
 public:
  // `stream` reads `bytes`.
  Estimate(google::protobuf::io::CodedInputStream* stream, const BytePieces& bytes)
      : stream_(stream),
        compressed_size_(bytes.compressed_size()),
        max_messages_(MaxParts(bytes, kMaxNestedMessages)),
        max_strings_(MaxParts(bytes, kMaxStrings)),
        max_fields_(MaxParts(bytes, kMaxFields)) {}

  // Reads a message that ends at `end`, and leaves the stream there. False at the first error.
  bool Add(const Descriptor* type, int64_t end, int depth) {
    // The number of open groups. Only unknown fields are groups, and what they contain is unknown too.
    int64_t groups = 0;
    while (stream_->CurrentPosition() < end) {
      const uint32_t tag = stream_->ReadTag();
      const auto wire = WireFormatLite::GetTagWireType(tag);
      const FieldDescriptor* const field =
          groups > 0 ? nullptr : type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (wire == WireFormatLite::WIRETYPE_START_GROUP) ++groups;
      if (wire == WireFormatLite::WIRETYPE_END_GROUP && --groups < 0) return false;
      if (tag == 0 || !AddField(field, wire, end, depth)) return false;
    }
    return groups == 0 && stream_->CurrentPosition() == end;
  }

  int64_t bytes() const { return bytes_; }

  // INVALID_ARGUMENT if there are more of something than may be.
  absl::Status CheckCounts(const Descriptor& type) const {
    if (messages_ > max_messages_) return TooMany(type, max_messages_, "messages");
    if (strings_ > max_strings_) return TooMany(type, max_strings_, "strings and unknown fields");
    if (fields_ > max_fields_) return TooMany(type, max_fields_, "fields");
    return absl::OkStatus();
  }

 private:
  bool AddField(const FieldDescriptor* field, WireFormatLite::WireType wire, int64_t end, int depth) {
    uint64_t number = 0;
    uint32_t number32 = 0;
    if (++fields_ > max_fields_) return false;
    if (field == nullptr && ++strings_ > max_strings_) return false;
    bytes_ += field == nullptr ? kUnknownBytes : kSpareFactor * int64_t{sizeof(number)};
    switch (wire) {
      case WireFormatLite::WIRETYPE_VARINT:
        return stream_->ReadVarint64(&number);
      case WireFormatLite::WIRETYPE_FIXED64:
        return stream_->ReadLittleEndian64(&number);
      case WireFormatLite::WIRETYPE_FIXED32:
        return stream_->ReadLittleEndian32(&number32);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return stream_->ReadVarint32(&number32) && stream_->CurrentPosition() + int64_t{number32} <= end &&
               AddBytes(field, number32, depth);
      case WireFormatLite::WIRETYPE_START_GROUP:
      case WireFormatLite::WIRETYPE_END_GROUP:
        return true;
      default:
        return false;
    }
  }

  bool AddBytes(const FieldDescriptor* field, uint32_t length, int depth) {
    const int64_t size = length;
    if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      bytes_ += kMessageBytes;
      if (++messages_ > max_messages_ || depth == kMaxDepth) return false;
      return Add(field->message_type(), stream_->CurrentPosition() + size, depth + 1);
    }
    // Only numbers are packed. A number that cannot be is an unknown field here.
    if (field != nullptr && field->is_packable()) {
      bytes_ += size * PackedFactor(*field);
    } else {
      bytes_ += kStringBytes + kUnknownBytes + size;
      if (field != nullptr && ++strings_ > max_strings_) return false;
    }
    return stream_->Skip(static_cast<int>(length));
  }

  absl::Status TooMany(const Descriptor& type, int64_t max, absl::string_view what) const {
    if (compressed_size_) return TooManyCompressedParts(type, *compressed_size_, max, what);
    return absl::InvalidArgumentError(absl::StrCat("the ", type.full_name(), " contains more than ", max, " ",
                                                   what,
                                                   "; send fewer inputs, parameters, elements or pictures"));
  }

  // How much larger numbers may be in memory than in a packed field.
  static int64_t PackedFactor(const FieldDescriptor& field) {
    switch (field.type()) {
      case FieldDescriptor::TYPE_INT64:
      case FieldDescriptor::TYPE_UINT64:
      case FieldDescriptor::TYPE_SINT64:
        return kSpareFactor * 8;
      case FieldDescriptor::TYPE_INT32:
      case FieldDescriptor::TYPE_UINT32:
      case FieldDescriptor::TYPE_SINT32:
      case FieldDescriptor::TYPE_ENUM:
        return kSpareFactor * 4;
      default:
        // The values have a fixed size, or one byte each.
        return 1;
    }
  }

  google::protobuf::io::CodedInputStream* const stream_;
  const std::optional<size_t> compressed_size_;
  const int64_t max_messages_;
  const int64_t max_strings_;
  const int64_t max_fields_;
  int64_t bytes_ = 0;
  int64_t messages_ = 0;
  // Strings and unknown fields.
  int64_t strings_ = 0;
  int64_t fields_ = 0;
};

}  // namespace

int64_t MaxParts(const BytePieces& bytes, int64_t max) {
  if (!bytes.compressed_size()) return max;
  return std::min(max, std::max(kMaxCompressedParts, static_cast<int64_t>(*bytes.compressed_size())));
}

absl::Status TooManyCompressedParts(const Descriptor& type, size_t compressed_size, int64_t max,
                                    absl::string_view parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", type.full_name(), " came compressed and contains more ", parts, " than the ", max,
                   " that ", compressed_size, " compressed bytes may have; send it uncompressed"));
}

absl::Status NoSuchMessage(const Descriptor& type) {
  return absl::InvalidArgumentError(
      absl::StrCat("the message is not a valid ", type.full_name(),
                   ": it cannot be parsed; check that the client uses the same .proto file"));
}

absl::StatusOr<int64_t> ParsedSize(const BytePieces& bytes, const Descriptor& type) {
  PiecesStream pieces(bytes);
  google::protobuf::io::CodedInputStream stream(&pieces);
  Estimate estimate(&stream, bytes);
  const bool is_read = estimate.Add(&type, static_cast<int64_t>(bytes.size()), 0);
  if (absl::Status counts = estimate.CheckCounts(type); !counts.ok()) return counts;
  if (!is_read) return NoSuchMessage(type);
  return kMessageBytes + estimate.bytes();
}

}  // namespace saccade::server
