// Presents the pieces of a message to protobuf.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// `bytes` must outlive the stream.
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

}  // namespace saccade::server
