#include "models/networks/option_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "models/error.h"

namespace saccade::models {
namespace {

// All of `text` as a number, independent of the locale.
template <typename T>
bool Parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end && !text.empty();
}

template <typename T>
std::string RangeText(const char* kind, T least, T most) {
  std::ostringstream text;
  text << kind << " from " << least << " to " << most;
  return text.str();
}

}  // namespace

const std::string* OptionReader::Find(const std::string& name, const std::string& legal) {
  names_.push_back(name);
  legal_ += "\n  " + name + ": " + legal;
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : &found->second;
}

void OptionReader::Refuse(const std::string& name, const std::string& value, const std::string& legal) const {
  throw LoadError(architecture_ + ": option " + name + " is '" + value + "'; expected " + legal);
}

std::string OptionReader::Choice(const std::string& name, const std::string& otherwise,
                                 const std::vector<std::string>& legal) {
  std::string text;
  for (const std::string& choice : legal) text += (text.empty() ? "" : " or ") + choice;
  const std::string* value = Find(name, text + " (default " + otherwise + ")");
  if (value == nullptr) return otherwise;
  if (std::find(legal.begin(), legal.end(), *value) == legal.end()) Refuse(name, *value, text);
  return *value;
}

int64_t OptionReader::Integer(const std::string& name, int64_t otherwise, int64_t least, int64_t most) {
  const std::string legal = RangeText("a whole number", least, most);
  const std::string* text = Find(name, legal + " (default " + std::to_string(otherwise) + ")");
  if (text == nullptr) return otherwise;
  int64_t value = 0;
  if (!Parse(*text, value) || value < least || value > most) Refuse(name, *text, legal);
  return value;
}

double OptionReader::Number(const std::string& name, double otherwise, double least, double most) {
  const std::string legal = RangeText("a number", least, most);
  std::ostringstream preset;
  preset << otherwise;
  const std::string* text = Find(name, legal + " (default " + preset.str() + ")");
  if (text == nullptr) return otherwise;
  double value = 0;
  if (!Parse(*text, value) || !std::isfinite(value) || value < least || value > most)
    Refuse(name, *text, legal);
  return value;
}

std::string OptionReader::Text(const std::string& name, const std::string& otherwise,
                               const std::string& legal) {
  const std::string* text = Find(name, legal + " (default " + otherwise + ")");
  return text == nullptr ? otherwise : *text;
}

void OptionReader::RefuseOthers() const {
  for (const auto& [name, value] : options_) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) continue;
    throw LoadError(architecture_ + ": there is no option '" + name + "'; there are:" + legal_);
  }
}

}  // namespace saccade::models
