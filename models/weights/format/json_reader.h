// A strict reader of JSON (RFC 8259) for headers whose shape is known: the caller asks for what must come
// next. It keeps no tree and never recurses, so depth and memory are the caller's to bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace saccade::models {

// Every function skips white space first and throws LoadError, with the byte's position, if what comes is
// not what was asked for. `text` must outlive the reader.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  void Expect(char punctuation);
  // Consumes `punctuation` if it comes next.
  bool Accept(char punctuation);
  // Decodes escapes; refuses control characters, lone surrogates, and what is not UTF-8.
  std::string ReadString();
  // A whole number from 0 to 2^63 - 1, without sign, fraction, exponent or leading zeros.
  int64_t ReadUnsigned();
  // Nothing but white space may be left.
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
