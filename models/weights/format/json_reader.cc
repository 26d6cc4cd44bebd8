#include "models/weights/format/json_reader.h"

#include <charconv>
#include <system_error>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/weights/format/tensor_entry.h"

namespace saccade::models {
namespace {

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonReader::Fail(const std::string& message) const {
  throw LoadError("JSON at byte " + std::to_string(position_) + ": " + message);
}

void JsonReader::SkipSpace() {
  while (position_ < text_.size() &&
         std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos)
    ++position_;
}

bool JsonReader::Accept(char punctuation) {
  SkipSpace();
  if (position_ == text_.size() || text_[position_] != punctuation) return false;
  ++position_;
  return true;
}

void JsonReader::Expect(char punctuation) {
  if (!Accept(punctuation)) {
    const std::string got = position_ == text_.size() ? "the end" : Quote(text_.substr(position_, 1));
    Fail(std::string("expected '") + punctuation + "', got " + got);
  }
}

uint32_t JsonReader::ReadHex4() {
  if (text_.size() - position_ < 4) Fail("an escape is cut short");
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[position_++];
    code <<= 4;
    if (c >= '0' && c <= '9') {
      code |= static_cast<uint32_t>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      code |= static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      Fail("\\u must be followed by four hexadecimal digits");
    }
  }
  return code;
}

void JsonReader::ReadEscape(std::string& out) {
  static constexpr std::string_view kEscapeLetters = "\"\\/bfnrt";
  static constexpr std::string_view kEscapedCharacters = "\"\\/\b\f\n\r\t";
  if (position_ == text_.size()) Fail("a string is not terminated");
  const char letter = text_[position_++];
  if (letter != 'u') {
    const size_t index = kEscapeLetters.find(letter);
    if (index == std::string_view::npos) Fail("unknown escape " + Quote(std::string_view(&letter, 1)));
    out += kEscapedCharacters[index];
    return;
  }
  uint32_t code = ReadHex4();
  if (code >= 0xD800 && code < 0xE000) {
    const bool paired = code < 0xDC00 && text_.substr(position_, 2) == "\\u";
    if (!paired) Fail("a lone surrogate");
    position_ += 2;
    const uint32_t low = ReadHex4();
    if (low < 0xDC00 || low >= 0xE000) Fail("a lone surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(code, out);
}

std::string JsonReader::ReadString() {
  Expect('"');
  std::string out;
  for (;;) {
    if (position_ == text_.size()) Fail("a string is not terminated");
    const char c = text_[position_++];
    if (c == '"') break;
    if (static_cast<unsigned char>(c) < 0x20) Fail("a control character in a string");
    if (c == '\\') {
      ReadEscape(out);
    } else {
      out += c;
    }
  }
  if (!IsUtf8(out)) Fail("a string is not UTF-8: " + Quote(out));
  return out;
}

int64_t JsonReader::ReadUnsigned() {
  SkipSpace();
  const size_t start = position_;
  int64_t value = 0;
  while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text_[position_] - '0', &value)) {
      Fail("a number is too large");
    }
    ++position_;
  }
  const bool continues =
      position_ < text_.size() && std::string_view(".eE").find(text_[position_]) != std::string_view::npos;
  if (position_ == start || continues) Fail("expected a non-negative integer");
  if (text_[start] == '0' && position_ - start > 1) Fail("a number begins with a zero");
  return value;
}

double JsonReader::ReadNumber() {
  SkipSpace();
  const std::string_view rest = text_.substr(position_);
  const size_t digit = rest.starts_with('-') ? 1 : 0;
  const bool starts = digit < rest.size() && rest[digit] >= '0' && rest[digit] <= '9';
  const bool padded = rest.substr(digit).starts_with('0') && digit + 1 < rest.size() &&
                      rest[digit + 1] >= '0' && rest[digit + 1] <= '9';
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const std::string_view read = rest.substr(0, static_cast<size_t>(end - rest.data()));
  // from_chars() takes "1." and "1.e5", which JSON does not have.
  const size_t point = read.find('.');
  const bool cut = point != std::string_view::npos &&
                   (point + 1 == read.size() || read[point + 1] < '0' || read[point + 1] > '9');
  if (!starts || padded || cut || error != std::errc()) Fail("expected a finite number");
  position_ += read.size();
  return value;
}

bool JsonReader::AcceptWord(std::string_view word) {
  SkipSpace();
  if (!text_.substr(position_).starts_with(word)) return false;
  position_ += word.size();
  return true;
}

char JsonReader::Peek() {
  SkipSpace();
  return position_ < text_.size() ? text_[position_] : '\0';
}

void JsonReader::ExpectEnd() {
  SkipSpace();
  if (position_ != text_.size()) Fail("unexpected data after the end");
}

}  // namespace saccade::models
