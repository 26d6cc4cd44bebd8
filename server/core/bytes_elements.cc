#include "server/core/bytes_elements.h"

#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/internal/endian.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr size_t kLengthBytes = 4;

absl::Status CountDiffers(int64_t expected, absl::string_view held) {
  return absl::InvalidArgumentError(
      absl::StrCat("the shape says ", expected, " BYTES elements; the contents hold ", held));
}

}  // namespace

absl::StatusOr<BytesElements> SplitBytes(const BytePieces& bytes, int64_t expected) {
  const auto owned = std::make_shared<std::deque<std::string>>();
  BytesElements split;
  PieceReader reader(bytes);
  size_t left = bytes.size();
  while (left > 0) {
    const auto index = static_cast<int64_t>(split.elements.size());
    if (index == expected) return CountDiffers(expected, "more");
    if (left < kLengthBytes) {
      return absl::InvalidArgumentError("the BYTES contents end within an element's 4-byte length");
    }
    std::array<char, kLengthBytes> head;
    reader.Read(kLengthBytes, head.data());
    left -= kLengthBytes;
    const uint32_t length = absl::little_endian::Load32(head.data());
    if (length > left) {
      return absl::InvalidArgumentError(absl::StrCat("element ", index, " has a length of ", length,
                                                     " bytes, but only ", left, " bytes are left"));
    }
    left -= length;
    BytePieces element;
    reader.Take(length, element);
    if (element.pieces().size() > 1) {
      std::string& whole = owned->emplace_back(length, '\0');
      element.CopyTo(whole.data());
      split.elements.emplace_back(whole);
    } else {
      split.elements.push_back(length == 0 ? std::string_view() : element.pieces()[0]);
    }
  }
  if (static_cast<int64_t>(split.elements.size()) != expected) return CountDiffers(expected, "fewer");
  if (!owned->empty()) split.owner = owned;
  return split;
}

void AppendElement(std::string_view element, std::string& bytes) {
  std::array<char, kLengthBytes> length;
  absl::little_endian::Store32(length.data(), static_cast<uint32_t>(element.size()));
  bytes.append(length.data(), length.size());
  bytes.append(element);
}

BytePieces JoinBytes(absl::Span<const std::string_view> elements) {
  auto lengths = std::make_shared<std::string>(elements.size() * kLengthBytes, '\0');
  for (size_t i = 0; i < elements.size(); ++i) {
    absl::little_endian::Store32(lengths->data() + i * kLengthBytes,
                                 static_cast<uint32_t>(elements[i].size()));
  }
  const std::string_view heads = *lengths;
  BytePieces bytes({}, std::move(lengths));
  for (size_t i = 0; i < elements.size(); ++i) {
    bytes.Add(heads.substr(i * kLengthBytes, kLengthBytes));
    bytes.Add(elements[i]);
  }
  return bytes;
}

}  // namespace saccade::server
