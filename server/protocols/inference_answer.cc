#include "server/protocols/inference_answer.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace saccade::server {
namespace {

using google::protobuf::io::CodedOutputStream;

// A field of bytes: the tag's wire type is 2.
constexpr uint32_t kTag = inference::ModelInferResponse::kRawOutputContentsFieldNumber << 3 | 2;

// A slice of its own costs more than copying so little.
constexpr size_t kReferredFrom = 4096;

size_t HeadSize(const OutputTensor& tensor) {
  return CodedOutputStream::VarintSize32(kTag) + CodedOutputStream::VarintSize64(tensor.data.size());
}

// What is written into one piece of memory, first to last.
size_t CopiedSize(const InferenceAnswer& answer) {
  size_t size = answer.fields.ByteSizeLong();
  for (const OutputTensor& tensor : answer.tensors) {
    size += HeadSize(tensor);
    for (const std::string_view piece : tensor.data.pieces()) {
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

  void Write(const OutputTensor& tensor, const std::shared_ptr<const InferenceAnswer>& owner) {
    at_ = CodedOutputStream::WriteVarint32ToArray(kTag, at_);
    at_ = CodedOutputStream::WriteVarint64ToArray(tensor.data.size(), at_);
    for (const std::string_view piece : tensor.data.pieces()) {
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

  // What was written since the last time.
  void Flush() {
    const auto end = static_cast<size_t>(at_ - begin());
    if (end > flushed_) slices_.push_back(copied_.sub(flushed_, end));
    flushed_ = end;
  }

  static grpc::Slice Referring(std::string_view piece, const std::shared_ptr<const InferenceAnswer>& owner) {
    using Owner = std::shared_ptr<const InferenceAnswer>;
    // gRPC does not write into it.
    return {const_cast<char*>(piece.data()), piece.size(),
            [](void* kept) { delete static_cast<Owner*>(kept); }, new Owner(owner)};
  }

  const grpc::Slice copied_;
  uint8_t* at_;
  size_t flushed_ = 0;
  std::vector<grpc::Slice> slices_;
};

}  // namespace

size_t SizeOf(const InferenceAnswer& answer) {
  size_t size = answer.fields.ByteSizeLong();
  for (const OutputTensor& tensor : answer.tensors) size += HeadSize(tensor) + tensor.data.size();
  return size;
}

grpc::ByteBuffer ToBytes(InferenceAnswer answer) {
  const auto kept = std::make_shared<const InferenceAnswer>(std::move(answer));
  Writer writer(CopiedSize(*kept));
  writer.Write(kept->fields);
  for (const OutputTensor& tensor : kept->tensors) writer.Write(tensor, kept);
  return writer.Finish();
}

}  // namespace saccade::server
