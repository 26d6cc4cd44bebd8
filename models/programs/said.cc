#include "models/programs/said.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

std::string Said(const std::exception& error) {
  constexpr size_t kMax = 2000;
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = of_torch == nullptr ? error.what() : of_torch->what_without_backtrace();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() > kMax) text = text.substr(0, kMax) + " ...";
  // Responses are UTF-8, but a program's text may not be, or the cut may be within a character.
  if (!IsUtf8(text)) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  }
  return text;
}

}  // namespace saccade::models
