#include "server/protocols/inference_answer.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/slice.h>

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

// Smaller pieces are copied, because that is cheaper than a slice of their own.
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

class Writer {
 public:
  explicit Writer(size_t copied) : copied_(copied), at_(begin()) {}

  void Write(const inference::ModelInferResponse& fields) {
    at_ = fields.SerializeWithCachedSizesToArray(at_);
  }

  void WriteHead(uint32_t tag, size_t size) {
    at_ = CodedOutputStream::WriteVarint32ToArray(tag, at_);
    at_ = CodedOutputStream::WriteVarint64ToArray(size, at_);
  }

  void Write(const BytePieces& raw, const std::shared_ptr<const InferenceAnswer>& owner) {
    WriteHead(kTag, raw.size());
    for (const std::string_view piece : raw.pieces()) {
      if (piece.size() < kReferredFrom) {
        std::memcpy(at_, piece.data(), piece.size());
        at_ += piece.size();
      } else {
        Flush();
        slices_.push_back(Referring(piece, owner));
      }
    }
  }

  grpc::ByteBuffer Finish() {
    Flush();
    return {slices_.data(), slices_.size()};
  }

 private:
  uint8_t* begin() const { return const_cast<uint8_t*>(copied_.begin()); }

  // Adds a slice with what was written since the last call.
  void Flush() {
    const auto end = static_cast<size_t>(at_ - begin());
    if (end > flushed_) slices_.push_back(copied_.sub(flushed_, end));
    flushed_ = end;
  }

  static grpc::Slice Referring(std::string_view piece, const std::shared_ptr<const InferenceAnswer>& owner) {
    using Owner = std::shared_ptr<const InferenceAnswer>;
    // gRPC does not write to the slice.
    return {const_cast<char*>(piece.data()), piece.size(),
            [](void* kept) { delete static_cast<Owner*>(kept); }, new Owner(owner)};
  }

  const grpc::Slice copied_;
  uint8_t* at_;
  size_t flushed_ = 0;
  std::vector<grpc::Slice> slices_;
};

grpc::ByteBuffer Write(InferenceAnswer answer, bool streamed) {
  const auto kept = std::make_shared<const InferenceAnswer>(std::move(answer));
  const size_t size = SizeOf(*kept);
  Writer writer(CopiedSize(*kept) + (streamed ? HeadSize(kStreamTag, size) : 0));
  if (streamed) writer.WriteHead(kStreamTag, size);
  writer.Write(kept->fields);
  for (const BytePieces& raw : kept->raws) writer.Write(raw, kept);
  return writer.Finish();
}

}  // namespace

size_t SizeOf(const InferenceAnswer& answer) {
  size_t size = answer.fields.ByteSizeLong();
  for (const BytePieces& raw : answer.raws) size += HeadSize(raw) + raw.size();
  return size;
}

grpc::ByteBuffer ToBytes(InferenceAnswer answer) { return Write(std::move(answer), /*streamed=*/false); }

grpc::ByteBuffer ToStreamBytes(InferenceAnswer answer) { return Write(std::move(answer), /*streamed=*/true); }

}  // namespace saccade::server
