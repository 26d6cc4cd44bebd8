// A strict JSON reader (RFC 8259): the caller requests each next element. It builds no tree and does not
// recurse, so the caller bounds depth and memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace saccade::models {

// Every function skips white space first, and throws a LoadError with the byte's position if the next element
// is not the requested one. `text` must outlive the reader.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  void Expect(char punctuation);
  // Consumes `punctuation` if it is next, and returns whether it was.
  bool Accept(char punctuation);
  // Reads a string and decodes escapes; rejects control characters, lone surrogates, and invalid UTF-8.
  std::string ReadString();
  // Reads an integer from 0 to 2^63 - 1, without sign, fraction, exponent or leading zeros.
  int64_t ReadUnsigned();
  // Reads a finite number with an optional sign, fraction and exponent.
  double ReadNumber();
  // Consumes `word` ("true", "null") if it is next, and returns whether it was.
  bool AcceptWord(std::string_view word);
  // Returns the next character without consuming it; 0 at the end.
  char Peek();
  // Requires that only white space is left.
  void ExpectEnd();

  [[noreturn]] void Fail(const std::string& message) const;

 private:
  void SkipSpace();
  uint32_t ReadHex4();
  void ReadEscape(std::string& out);

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace saccade::models
