#include "server/quantize/disparity_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/quantize/bounded_file.h"
#include "server/quantize/mask_file.h"
#include "server/quantize/truth_png.h"

namespace saccade::server {
namespace {

constexpr float kNotMeasured = std::numeric_limits<float>::quiet_NaN();
// What a disparity is multiplied by in KITTI's files.
constexpr float kKittiSteps = 256;
// Sides of a float map, at most.
constexpr int64_t kMaxPfmSide = int64_t{1} << 20;
// Bytes of a word of a float map's header, at most.
constexpr size_t kMaxPfmWord = 32;

absl::StatusOr<std::vector<float>> ReadKittiPng(const std::string& path, int64_t height, int64_t width) {
  const auto read = ReadTruthPng(path, height, width);
  if (!read.ok()) return read.status();
  if (read->bits != 16) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": has ", read->bits, " bits for each pixel; expected 16, with 256 times the disparity"));
  }
  std::vector<float> disparities;
  disparities.reserve(read->values.size());
  for (const uint16_t value : read->values)
    disparities.push_back(value > 0 ? static_cast<float>(value) / kKittiSteps : kNotMeasured);
  return disparities;
}

// Removes white space and the word behind it, of which at most kMaxPfmWord bytes are looked at.
absl::string_view TakeWord(absl::string_view& text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() && end < kMaxPfmWord &&
         !absl::ascii_isspace(static_cast<unsigned char>(text[end])))
    ++end;
  const absl::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

// Removes the rest of a line that holds white space alone. Returns false if there is anything else.
bool TakeLineEnd(absl::string_view& text) {
  const size_t end = text.find_first_not_of(" \t\r");
  if (end == absl::string_view::npos || text[end] != '\n') return false;
  text.remove_prefix(end + 1);
  return true;
}

struct PfmHead {
  int64_t width = 0;
  int64_t height = 0;
  bool is_little_endian = true;
};

// Removes the header of a float map with one channel.
std::optional<PfmHead> TakeHead(absl::string_view& text) {
  PfmHead head;
  double scale = 0;
  const bool is_one = TakeWord(text) == "Pf" && absl::SimpleAtoi(TakeWord(text), &head.width) &&
                      absl::SimpleAtoi(TakeWord(text), &head.height) &&
                      absl::SimpleAtod(TakeWord(text), &scale) && TakeLineEnd(text) && scale != 0 &&
                      !std::isnan(scale);
  if (!is_one || head.width < 1 || head.height < 1 || head.width > kMaxPfmSide || head.height > kMaxPfmSide)
    return std::nullopt;
  head.is_little_endian = scale < 0;
  return head;
}

float FloatAt(const char* bytes, bool is_little_endian) {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  if (is_little_endian != (std::endian::native == std::endian::little)) bits = __builtin_bswap32(bits);
  return std::bit_cast<float>(bits);
}

absl::StatusOr<std::vector<float>> ReadPfm(const std::string& path, int64_t height, int64_t width,
                                           double max_disparity) {
  const auto content = ReadBoundedFile(path, kMaxTruthFileBytes);
  if (!content.ok()) return content.status();
  absl::string_view numbers = *content;
  const auto head = TakeHead(numbers);
  if (!head) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": does not start as a portable float map; expected one with one channel (Pf), its "
                     "width, its height and its scale"));
  }
  if (absl::Status size = CheckTruthSize(path, head->height, head->width, height, width); !size.ok())
    return size;
  const auto expected = static_cast<size_t>(4 * width * height);
  if (numbers.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has ", numbers.size(),
                                                   " bytes behind its header; expected ", expected,
                                                   ", 4 for each pixel. Was it cut short?"));
  }
  std::vector<float> disparities(static_cast<size_t>(width * height));
  for (int64_t y = 0; y < height; ++y) {
    // The lowest row comes first.
    const char* const row = numbers.data() + 4 * (height - 1 - y) * width;
    for (int64_t x = 0; x < width; ++x) {
      const float value = FloatAt(row + 4 * x, head->is_little_endian);
      const bool counts = std::isfinite(value) && static_cast<double>(value) < max_disparity;
      disparities[static_cast<size_t>(y * width + x)] = counts ? value : kNotMeasured;
    }
  }
  return disparities;
}

}  // namespace

absl::StatusOr<std::vector<float>> ReadDisparityFile(const std::string& path, int64_t height, int64_t width,
                                                     double max_disparity) {
  return absl::EndsWithIgnoreCase(path, ".pfm") ? ReadPfm(path, height, width, max_disparity)
                                                : ReadKittiPng(path, height, width);
}

}  // namespace saccade::server
