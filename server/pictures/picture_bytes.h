// Bounds-checked reading of integers, and the error messages that all picture formats share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {

// A view of a picture's bytes. Bytes beyond the end read as zero, so no reader can overrun; has() tells
// whether a range of bytes exists.
class PictureBytes {
 public:
  explicit PictureBytes(std::string_view bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size(); }
  bool has(size_t at, size_t count) const { return at <= size() && count <= size() - at; }
  bool tag(size_t at, std::string_view tag) const {
    return has(at, tag.size()) && bytes_.substr(at, tag.size()) == tag;
  }
  // REQUIRES: has(at, count).
  std::string_view part(size_t at, size_t count) const { return bytes_.substr(at, count); }
  // Position of the first `byte` at or after `at`, or size() if there is none.
  size_t find(char byte, size_t at) const {
    const size_t found = bytes_.find(byte, at);
    return found == std::string_view::npos ? size() : found;
  }

  uint32_t u8(size_t at) const { return has(at, 1) ? static_cast<uint8_t>(bytes_[at]) : 0; }
  uint32_t big16(size_t at) const { return u8(at) << 8 | u8(at + 1); }
  uint32_t big32(size_t at) const { return big16(at) << 16 | big16(at + 2); }
  uint32_t little16(size_t at) const { return u8(at) | u8(at + 1) << 8; }
  uint32_t little24(size_t at) const { return little16(at) | u8(at + 2) << 16; }
  uint32_t little32(size_t at) const { return little16(at) | little16(at + 2) << 16; }

 private:
  const std::string_view bytes_;
};

inline absl::Status Truncated(const char* format, const PictureBytes& bytes, const char* missing) {
  return absl::InvalidArgumentError(absl::StrCat("the ", format, " picture is truncated: ", bytes.size(),
                                                 " bytes were received, and ", missing,
                                                 "; send the whole file"));
}

inline absl::Status Broken(const char* format, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat("the ", format, " picture cannot be read: ", why));
}

}  // namespace saccade::server
