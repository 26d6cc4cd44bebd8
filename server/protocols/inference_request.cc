#include "server/protocols/inference_request.h"

#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

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

// Maximum length of a 32-bit varint.
constexpr size_t kMost32 = 5;

// Splits a message's bytes into raw_input_contents and all other fields, in order.
class Splitter {
 public:
  Splitter(const std::vector<std::string_view>& pieces, InferenceRequest& request)
      : reader_(pieces), request_(request) {}

  absl::Status Split() {
    while (!reader_.done()) {
      const PieceReader field = reader_;
      const auto tag = Tag();
      if (!tag) return NoMessage("a field's tag is invalid");
      const auto is_ours = groups_ == 0 && tag->value == kRawTag;
      if (!is_ours) reader_ = field;
      if (!(is_ours ? ReadRaw() : Pass(*tag))) return NoMessage("it ends within a field");
    }
    return absl::OkStatus();
  }

  const BytePieces& rest() const { return rest_; }

 private:
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
    if (!tag || tag->bytes > kMost32) return std::nullopt;
    tag->value &= std::numeric_limits<uint32_t>::max();
    return tag;
  }

  // Reads what follows the tag of raw_input_contents.
  bool ReadRaw() {
    const auto length = Varint();
    if (!length || length->bytes > kMost32) return false;
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

// Presents pieces to protobuf's parser.
class PiecesStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PiecesStream(const BytePieces& bytes) : pieces_(bytes.pieces()) {}

  bool Next(const void** data, int* size) override {
    if (next_ == pieces_.size()) return false;
    const std::string_view piece = pieces_[next_++].substr(from_);
    from_ = 0;
    *data = piece.data();
    *size = static_cast<int>(piece.size());
    read_ += *size;
    return true;
  }

  void BackUp(int count) override {
    --next_;
    from_ = pieces_[next_].size() - static_cast<size_t>(count);
    read_ -= count;
  }

  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0 && Next(&data, &size)) count -= size;
    if (count < 0) BackUp(-count);
    return count <= 0;
  }

  int64_t ByteCount() const override { return read_; }

 private:
  const absl::Span<const std::string_view> pieces_;
  size_t next_ = 0;
  size_t from_ = 0;  // offset in the next piece
  int64_t read_ = 0;
};

}  // namespace

absl::Status ReadInferenceRequest(const grpc::ByteBuffer& bytes, InferenceRequest& request) {
  if (bytes.Valid() && !bytes.Dump(&request.slices).ok()) return NoMessage("it cannot be decompressed");
  std::vector<std::string_view> pieces;
  pieces.reserve(request.slices.size());
  for (const grpc::Slice& slice : request.slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  Splitter splitter(pieces, request);
  if (absl::Status split = splitter.Split(); !split.ok()) return split;
  PiecesStream stream(splitter.rest());
  if (!request.fields.ParseFromZeroCopyStream(&stream)) return NoMessage("its fields cannot be parsed");
  return absl::OkStatus();
}

}  // namespace saccade::server
