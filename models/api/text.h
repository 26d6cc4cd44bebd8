// Helpers for text in messages. Does not include LibTorch.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace saccade::models {

// Makes text from a file or a request safe for a message: quoted, shortened, and free of control characters.
std::string Quote(std::string_view text);

// Returns "a, b" for {"a", "b"} and the separator ", ".
std::string Joined(std::span<const std::string> parts, std::string_view separator);

// Returns the candidate that a mistyped `word` most likely stands for: the one that the fewest insertions,
// deletions, replacements and swaps of neighbours lead to, if there are at most three, and not more than half
// as many as characters (without dashes); among equals the one of the most similar length. Otherwise "".
std::string NearestWord(std::string_view word, std::span<const std::string> candidates);

// Returns the bytes of the first UTF-8 character of `text`; 0 if it is malformed: truncated, an overlong
// form, a surrogate, or beyond U+10FFFF. REQUIRES: `text` is not empty.
size_t Utf8CharacterBytes(std::string_view text);

// Returns whether all of `text` is well-formed UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace saccade::models
