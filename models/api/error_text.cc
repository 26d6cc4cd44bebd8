#include "models/api/error_text.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "models/api/text.h"

namespace saccade::models {

std::string ErrorText(const std::exception& error) {
  constexpr size_t kMaxBytes = 2000;
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_torch == nullptr ? error.what() : of_torch->what_without_backtrace();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kMaxBytes) text = text.substr(0, kMaxBytes) + " ...";
  // Responses are UTF-8, but a program's text may not be, or the cut may be within a character.
  if (!IsUtf8(text)) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  }
  return text;
}

}  // namespace saccade::models
