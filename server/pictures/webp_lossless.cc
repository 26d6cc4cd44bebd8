#include "server/pictures/webp_lossless.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

// Blocks with codes of their own. libwebp takes up to 12 KiB for each; its encoder makes at most 2,600.
constexpr int64_t kMaxBlocks = 4096;

constexpr int kMaxCodeLength = 15;
constexpr int kLiterals = 256;
constexpr int kLengthCodes = 24;
constexpr int kDistanceCodes = 40;

// Reads bits, the lowest of each byte first. Bits beyond the end read as zero, and ended() is true then.
class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}

  uint32_t Read(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) value |= (bytes_.u8(at_ / 8) >> (at_ % 8) & 1) << i;
    return value;
  }
  size_t position() const { return at_; }
  bool ended() const { return at_ > 8 * bytes_.size(); }

 private:
  const PictureBytes bytes_;
  size_t at_ = 0;
};

// A canonical prefix code.
class PrefixCode {
 public:
  // Null if the lengths, 0 for unused symbols, are not those of a complete code. A single symbol takes no
  // bits.
  static std::optional<PrefixCode> Of(const std::vector<int>& lengths) {
    PrefixCode code;
    for (const int length : lengths) code.counts_[length] += length > 0;
    std::array<int, kMaxCodeLength + 2> next{};
    uint32_t space = 0;
    for (int length = 1; length <= kMaxCodeLength; ++length) {
      next[length + 1] = next[length] + code.counts_[length];
      space += static_cast<uint32_t>(code.counts_[length]) << (kMaxCodeLength - length);
    }
    code.symbols_.resize(next[kMaxCodeLength + 1]);
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] > 0) code.symbols_[next[lengths[symbol]]++] = static_cast<int>(symbol);
    }
    if (code.symbols_.size() != 1 && space != 1u << kMaxCodeLength) return std::nullopt;
    return code;
  }

  int Read(Bits& bits) const {
    if (symbols_.size() == 1) return symbols_.front();
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kMaxCodeLength; ++length) {
      code |= static_cast<int>(bits.Read(1));
      if (code - first < counts_[length]) return symbols_[index + code - first];
      index += counts_[length];
      first = (first + counts_[length]) << 1;
      code <<= 1;
    }
    return 0;
  }

 private:
  std::array<int, kMaxCodeLength + 1> counts_{};
  // Used symbols in the order of their codes.
  std::vector<int> symbols_;
};

std::optional<PrefixCode> ReadSimpleCode(Bits& bits, int alphabet) {
  std::vector<int> lengths(alphabet);
  const bool two = bits.Read(1) != 0;
  const uint32_t first = bits.Read(bits.Read(1) != 0 ? 8 : 1);
  const uint32_t second = two ? bits.Read(8) : first;
  if (std::max(first, second) >= lengths.size()) return std::nullopt;
  lengths[first] = lengths[second] = 1;
  return PrefixCode::Of(lengths);
}

std::optional<PrefixCode> ReadCode(Bits& bits, int alphabet) {
  if (bits.Read(1) != 0) return ReadSimpleCode(bits, alphabet);
  static constexpr int kOrder[] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::vector<int> of_lengths(std::size(kOrder));
  for (int i = 0, given = 4 + static_cast<int>(bits.Read(4)); i < given; ++i)
    of_lengths[kOrder[i]] = static_cast<int>(bits.Read(3));
  const auto length_code = PrefixCode::Of(of_lengths);
  if (!length_code) return std::nullopt;
  int left = alphabet;
  if (bits.Read(1) != 0) {
    const int width = 2 + 2 * static_cast<int>(bits.Read(3));
    left = 2 + static_cast<int>(bits.Read(width));
  }
  if (left > alphabet) return std::nullopt;
  std::vector<int> lengths;
  for (int previous = 8; left > 0 && static_cast<int>(lengths.size()) < alphabet; --left) {
    const int length = length_code->Read(bits);
    if (length < 16) {
      lengths.push_back(length);
      if (length > 0) previous = length;
      continue;
    }
    static constexpr std::pair<int, int> kRepeats[] = {{2, 3}, {3, 3}, {7, 11}};
    const auto [width, base] = kRepeats[length - 16];
    lengths.insert(lengths.end(), base + bits.Read(width), length == 16 ? previous : 0);
  }
  if (static_cast<int>(lengths.size()) > alphabet) return std::nullopt;
  return PrefixCode::Of(lengths);
}

// The length or distance that a prefix and its extra bits stand for.
int64_t ReadPrefixed(Bits& bits, int prefix) {
  if (prefix < 4) return prefix + 1;
  const int extra = (prefix - 2) >> 1;
  return (int64_t{2 + (prefix & 1)} << extra) + bits.Read(extra) + 1;
}

// Number of blocks of 2^`bits` pixels on each side.
int64_t Blocks(int64_t side, int bits) { return (side + (int64_t{1} << bits) - 1) >> bits; }

// Reads the size of the colour cache, which is 0 if there is none; -1 if it is invalid.
int ReadCacheSize(Bits& bits) {
  if (bits.Read(1) == 0) return 0;
  const int width = static_cast<int>(bits.Read(4));
  return width < 1 || width > 11 ? -1 : 1 << width;
}

// Skips the picture of a transform, which has one group of codes. False if it is damaged.
bool SkipPicture(Bits& bits, int64_t pixels) {
  const int cache = ReadCacheSize(bits);
  if (cache < 0) return false;
  std::vector<PrefixCode> codes;
  for (const int alphabet :
       {kLiterals + kLengthCodes + cache, kLiterals, kLiterals, kLiterals, kDistanceCodes}) {
    auto code = ReadCode(bits, alphabet);
    if (!code) return false;
    codes.push_back(*std::move(code));
  }
  while (pixels > 0 && !bits.ended()) {
    const size_t before = bits.position();
    const int symbol = codes[0].Read(bits);
    int64_t skipped = 1;
    if (symbol < kLiterals) {
      for (int channel = 1; channel <= 3; ++channel) codes[channel].Read(bits);
    } else if (symbol < kLiterals + kLengthCodes) {
      skipped = ReadPrefixed(bits, symbol - kLiterals);
      ReadPrefixed(bits, codes[4].Read(bits));
    }
    // Codes of a single symbol take no bits, so the rest of the picture is the same.
    if (bits.position() == before) pixels %= skipped;
    if (bits.position() != before || pixels > 0) pixels -= skipped;
  }
  return pixels == 0 && !bits.ended();
}

// Skips the transforms and sets `width` to that of the picture which they leave. False if they are damaged.
bool SkipTransforms(Bits& bits, int64_t& width, int64_t height) {
  enum Transform { kPredictor, kColour, kSubtractGreen, kPalette };
  for (uint32_t seen = 0; bits.Read(1) != 0;) {
    const uint32_t type = bits.Read(2);
    if ((seen & 1u << type) != 0) return false;
    seen |= 1u << type;
    if (type == kPalette) {
      const int colours = 1 + static_cast<int>(bits.Read(8));
      if (!SkipPicture(bits, colours)) return false;
      width = Blocks(width, colours > 16 ? 0 : colours > 4 ? 1 : colours > 2 ? 2 : 3);
    } else if (type != kSubtractGreen) {
      const int side = 2 + static_cast<int>(bits.Read(3));
      if (!SkipPicture(bits, Blocks(width, side) * Blocks(height, side))) return false;
    }
  }
  return !bits.ended();
}

}  // namespace

absl::Status CheckWebpBlocks(std::string_view data, int64_t width, int64_t height) {
  Bits bits(data);
  if (!SkipTransforms(bits, width, height) || ReadCacheSize(bits) < 0)
    return Broken("WebP", "its lossless data are damaged");
  if (bits.Read(1) == 0) return absl::OkStatus();
  const int side = 2 + static_cast<int>(bits.Read(3));
  const int64_t blocks = Blocks(width, side) * Blocks(height, side);
  if (blocks <= kMaxBlocks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the WebP picture cannot be read: its lossless data are divided into ", blocks,
                   " blocks; at most ", kMaxBlocks, " are accepted, so save it again, or as PNG"));
}

}  // namespace saccade::server
