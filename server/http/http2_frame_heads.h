// Finds the heads of frames among the bytes of an HTTP/2 connection.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace saccade::server {

// For one direction from a client, which begins with its preface. Does not check what it reads. Not
// thread-safe.
class FrameHeads {
 public:
  // Takes the next bytes, and calls `found(const nghttp2_frame_hd&)` for each head that is complete with
  // them.
  template <typename Found>
  void Take(std::string_view bytes, Found found) {
    while (!bytes.empty()) {
      if (skipped_ > 0) {
        const size_t skipped = std::min(skipped_, bytes.size());
        bytes.remove_prefix(skipped);
        skipped_ -= skipped;
        continue;
      }
      const size_t taken = std::min(head_.size() - size_, bytes.size());
      std::copy_n(bytes.begin(), taken, head_.begin() + static_cast<ptrdiff_t>(size_));
      bytes.remove_prefix(taken);
      size_ += taken;
      if (size_ < head_.size()) return;
      size_ = 0;
      const nghttp2_frame_hd head = Head();
      skipped_ = head.length;
      found(head);
    }
  }

 private:
  uint32_t Byte(size_t at) const { return static_cast<uint8_t>(head_[at]); }
  nghttp2_frame_hd Head() const {
    nghttp2_frame_hd head{};
    head.length = Byte(0) << 16 | Byte(1) << 8 | Byte(2);
    head.type = static_cast<uint8_t>(Byte(3));
    head.flags = static_cast<uint8_t>(Byte(4));
    // The first bit is reserved.
    head.stream_id = static_cast<int32_t>((Byte(5) & 0x7F) << 24 | Byte(6) << 16 | Byte(7) << 8 | Byte(8));
    return head;
  }

  // Bytes to pass over: of the preface, or of a frame's payload.
  size_t skipped_ = NGHTTP2_CLIENT_MAGIC_LEN;
  // The head that is being read, and how much of it there is.
  std::array<char, 9> head_{};
  size_t size_ = 0;
};

}  // namespace saccade::server
