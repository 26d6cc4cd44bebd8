#include "models/api/text.h"

#include <algorithm>
#include <array>

namespace saccade::models {
namespace {

constexpr size_t kMaxQuotedBytes = 120;
// Longer words are not compared.
constexpr size_t kMaxWord = 64;

// The fewest insertions, deletions, replacements and swaps of neighbours that lead from one word to another.
size_t Changes(std::string_view from, std::string_view to) {
  // changes[i][j] leads from the first i characters to the first j.
  std::array<std::array<size_t, kMaxWord + 1>, kMaxWord + 1> changes;
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        changes[i][j] = i + j;
        continue;
      }
      const size_t replaced = changes[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      changes[i][j] = std::min({replaced, changes[i - 1][j] + 1, changes[i][j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        changes[i][j] = std::min(changes[i][j], changes[i - 2][j - 2] + 1);
    }
  }
  return changes[from.size()][to.size()];
}

// Returns the length of the UTF-8 sequence that begins with `lead`, or 0 if it is invalid.
size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// After four leads the second byte has a smaller range, which excludes overlong forms, surrogates and code
// points beyond U+10FFFF.
bool SecondByteFits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second <= 0x9F;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second <= 0x8F;
    default:
      return true;
  }
}

}  // namespace

std::string Quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\') {
      quoted += c;
    } else {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return quoted + (text.size() > kMaxQuotedBytes ? "...'" : "'");
}

std::string Joined(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

std::string NearestWord(std::string_view word, std::span<const std::string> candidates) {
  std::string nearest;
  if (word.size() > kMaxWord) return nearest;
  // All flags begin with dashes, so these say nothing.
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  size_t best = std::min<size_t>(3, (word.size() - dashes) / 2) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxWord) continue;
    const size_t changes = Changes(word, candidate);
    const auto length_difference = [&](const std::string& one) {
      return one.size() > word.size() ? one.size() - word.size() : word.size() - one.size();
    };
    const bool same = changes == best && !nearest.empty();
    if (changes > best || (changes == best && !same)) continue;
    if (same && length_difference(candidate) >= length_difference(nearest)) continue;
    best = changes;
    nearest = candidate;
  }
  return nearest;
}

size_t Utf8CharacterBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = SequenceLength(lead);
  if (length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    const auto next = static_cast<unsigned char>(text[k]);
    if ((next & 0xC0) != 0x80 || (k == 1 && !SecondByteFits(lead, next))) return 0;
  }
  return length;
}

bool IsUtf8(std::string_view text) {
  for (;;) {
    // Most text is ASCII.
    while (!text.empty() && static_cast<unsigned char>(text.front()) < 0x80) text.remove_prefix(1);
    if (text.empty()) return true;
    const size_t bytes = Utf8CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
}

}  // namespace saccade::models
