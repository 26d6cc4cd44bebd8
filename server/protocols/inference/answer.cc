#include "server/protocols/inference/answer.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace saccade::server {
namespace {

using google::protobuf::io::CodedOutputStream;

// The tag of a bytes field: wire type 2.
constexpr uint32_t kTag = inference::ModelInferResponse::kRawOutputContentsFieldNumber << 3 | 2;

// Smaller pieces are copied, because that is cheaper than a piece of their own.
constexpr size_t kReferredFrom = 4096;

// The tag of the answer in a stream's message.
constexpr uint32_t kStreamTag = inference::ModelStreamInferResponse::kInferResponseFieldNumber << 3 | 2;

size_t HeadSize(uint32_t tag, size_t size) {
  return CodedOutputStream::VarintSize32(tag) + CodedOutputStream::VarintSize64(size);
}
size_t HeadSize(const BytePieces& raw) { return HeadSize(kTag, raw.size()); }

// The number of bytes that are copied into one allocation.
size_t CopiedSize(const InferenceAnswer& answer) {
  size_t size = answer.fields.ByteSizeLong();
  for (const BytePieces& raw : answer.raws) {
    size += HeadSize(raw);
    for (const std::string_view piece : raw.pieces()) {
      if (piece.size() < kReferredFrom) size += piece.size();
    }
  }
  return size;
}

// What the bytes of a serialised answer refer to.
struct Written {
  InferenceAnswer answer;
  std::unique_ptr<uint8_t[]> copied;
};

class Writer {
 public:
  Writer(const std::shared_ptr<Written>& written, size_t copied) : bytes_(std::string_view(), written) {
    written->copied = std::make_unique_for_overwrite<uint8_t[]>(copied);
    at_ = flushed_ = written->copied.get();
  }

  void Write(const inference::ModelInferResponse& fields) {
    at_ = fields.SerializeWithCachedSizesToArray(at_);
  }

  void WriteHead(uint32_t tag, size_t size) {
    at_ = CodedOutputStream::WriteVarint32ToArray(tag, at_);
    at_ = CodedOutputStream::WriteVarint64ToArray(size, at_);
  }

  void Write(const BytePieces& raw) {
    WriteHead(kTag, raw.size());
    for (const std::string_view piece : raw.pieces()) {
      if (piece.size() < kReferredFrom) {
        std::memcpy(at_, piece.data(), piece.size());
        at_ += piece.size();
      } else {
        Flush();
        bytes_.Add(piece);
      }
    }
  }

  BytePieces Finish() {
    Flush();
    return std::move(bytes_);
  }

 private:
  // Adds what was copied since the last call.
  void Flush() {
    bytes_.Add({reinterpret_cast<const char*>(flushed_), static_cast<size_t>(at_ - flushed_)});
    flushed_ = at_;
  }

  BytePieces bytes_;
  uint8_t* at_;
  uint8_t* flushed_;
};

BytePieces Write(InferenceAnswer answer, bool streamed) {
  const auto written = std::make_shared<Written>(Written{.answer = std::move(answer), .copied = nullptr});
  const InferenceAnswer& kept = written->answer;
  const size_t size = SizeOf(kept);
  Writer writer(written, CopiedSize(kept) + (streamed ? HeadSize(kStreamTag, size) : 0));
  if (streamed) writer.WriteHead(kStreamTag, size);
  writer.Write(kept.fields);
  for (const BytePieces& raw : kept.raws) writer.Write(raw);
  return writer.Finish();
}

}  // namespace

size_t SizeOf(const InferenceAnswer& answer) {
  size_t size = answer.fields.ByteSizeLong();
  for (const BytePieces& raw : answer.raws) size += HeadSize(raw) + raw.size();
  return size;
}

BytePieces ToBytes(InferenceAnswer answer) { return Write(std::move(answer), /*streamed=*/false); }

BytePieces ToStreamBytes(InferenceAnswer answer) { return Write(std::move(answer), /*streamed=*/true); }

}  // namespace saccade::server
