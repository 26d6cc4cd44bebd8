#include "server/core/json_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Index of the quote that ends the string whose first character is text[begin], or text.size().
size_t EndOfString(absl::string_view text, size_t begin) {
  size_t from = begin;
  while (from < text.size()) {
    const void* const found = std::memchr(text.data() + from, '"', text.size() - from);
    if (found == nullptr) break;
    const auto quote = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    size_t backslashes = 0;
    while (quote - backslashes > from && text[quote - backslashes - 1] == '\\') ++backslashes;
    // A quote after an odd number of backslashes belongs to the string.
    if (backslashes % 2 == 0) return quote;
    from = quote + 1;
  }
  return text.size();
}

bool EndsNumber(char c) {
  switch (c) {
    case ',':
    case ':':
    case '[':
    case ']':
    case '{':
    case '}':
    case ' ':
    case '\t':
    case '\n':
    case '\r':
      return true;
    default:
      return false;
  }
}

// Adds what `text`, which has no strings, contains to `extent`. False if a number is too long. Of each block,
// reads only as much as is needed to find that a number begins or ends in it.
bool AddStructure(absl::string_view text, JsonExtent& extent) {
  for (; text.size() >= kMaxJsonNumber; text.remove_prefix(kMaxJsonNumber)) {
    const absl::string_view block = text.substr(0, kMaxJsonNumber);
    if (std::none_of(block.begin(), block.end(), EndsNumber)) return false;
    if (std::all_of(block.begin(), block.end(), EndsNumber)) extent.structure_bytes += block.size();
  }
  return true;
}

}  // namespace

size_t MaxJsonValuesIn(absl::string_view text) {
  // Each value but the outermost, and each name, follows one of these.
  const auto precedes = [](char c) { return (c == ',') | (c == ':') | (c == '[') | (c == '{'); };
  size_t values = 1;
  // A block is so long that its sum fits in a byte, which lets the compiler add many at once.
  constexpr size_t kBlock = 128;
  for (; text.size() >= kBlock; text.remove_prefix(kBlock)) {
    const char* const block = text.data();
    uint8_t found = 0;
    for (size_t i = 0; i < kBlock; ++i) found = static_cast<uint8_t>(found + precedes(block[i]));
    values += found;
  }
  for (const char c : text) values += precedes(c);
  return values;
}

absl::Status CheckJsonValues(size_t values) {
  if (values <= kMaxJsonValues) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the JSON has about ", values, " values, more than the ",
                                                 kMaxJsonValues, " that are allowed; send fewer"));
}

absl::StatusOr<JsonExtent> MeasureJson(absl::string_view text) {
  JsonExtent extent;
  size_t from = 0;
  while (from < text.size()) {
    const size_t quote = std::min(text.find('"', from), text.size());
    if (!AddStructure(text.substr(from, quote - from), extent)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the JSON has a number of more than ", kMaxJsonNumber,
                       " characters; send numbers with as many digits as their type has"));
    }
    if (quote == text.size()) break;
    const size_t end = EndOfString(text, quote + 1);
    ++extent.strings;
    extent.string_bytes += end - quote - 1;
    from = end + 1;
  }
  return extent;
}

}  // namespace saccade::server
