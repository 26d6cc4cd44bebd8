#include "models/networks/option_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

// Parses all of `text` as a number, independently of the locale.
template <typename T>
bool Parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end && !text.empty();
}

template <typename T>
std::string RangeText(const char* kind, T min, T max) {
  std::ostringstream text;
  text << kind << " from " << min << " to " << max;
  return text.str();
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text + ",");
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

// Returns "4" or "1 to 64".
std::string CountText(OptionReader::Range count) {
  std::string text = std::to_string(count.min);
  return count.min == count.max ? text : text + " to " + std::to_string(count.max);
}

}  // namespace

std::string ListText(std::span<const int64_t> numbers) {
  std::string text;
  for (const int64_t number : numbers) {
    if (!text.empty()) text += ",";
    text += std::to_string(number);
  }
  return text;
}

std::string NamesText(const std::vector<std::string>& names) {
  return names.empty() ? "none" : Joined(names, ",");
}

std::string FlagText(bool flag) { return flag ? "true" : "false"; }

std::string NumberText(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

void RefuseOption(const std::string& architecture, const std::string& name, const std::string& value,
                  const std::string& legal) {
  throw LoadError(architecture + ": option " + name + " is " + Quote(value) + "; expected " + legal);
}

void CheckHeads(const std::string& architecture, int64_t heads, int64_t key_channels,
                int64_t value_channels) {
  if (key_channels % heads == 0 && value_channels % heads == 0) return;
  RefuseOption(architecture, "heads", std::to_string(heads),
               "a divisor of key_channels and value_channels, which are " + std::to_string(key_channels) +
                   " and " + std::to_string(value_channels));
}

void CheckMultiple(const std::string& architecture, const std::string& option, int64_t value,
                   int64_t multiple) {
  if (value % multiple == 0) return;
  RefuseOption(architecture, option, std::to_string(value), "a multiple of " + std::to_string(multiple));
}

void CheckWidth(const std::string& architecture, double width) {
  if (width * 8 != std::floor(width * 8))
    RefuseOption(architecture, "width", NumberText(width), "a multiple of 0.125 up to 1");
}

const std::string* OptionReader::Find(const std::string& name, const std::string& legal) {
  names_.push_back(name);
  legal_ += "\n  " + name + ": " + legal;
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : &found->second;
}

std::string OptionReader::Choice(const std::string& name, const std::string& otherwise,
                                 const std::vector<std::string>& legal) {
  const std::string text = Joined(legal, " or ");
  const std::string* value = Find(name, text + " (default " + otherwise + ")");
  if (value == nullptr) return otherwise;
  if (std::find(legal.begin(), legal.end(), *value) == legal.end()) Refuse(name, *value, text);
  return *value;
}

bool OptionReader::Flag(const std::string& name, bool otherwise) {
  return Choice(name, FlagText(otherwise), {"true", "false"}) == "true";
}

int64_t OptionReader::Integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max) {
  const std::string legal = RangeText("a whole number", min, max);
  const std::string* text = Find(name, legal + " (default " + std::to_string(otherwise) + ")");
  if (text == nullptr) return otherwise;
  int64_t value = 0;
  if (!Parse(*text, value) || value < min || value > max) Refuse(name, *text, legal);
  return value;
}

double OptionReader::Number(const std::string& name, double otherwise, double min, double max) {
  const std::string legal = RangeText("a number", min, max);
  const std::string* text = Find(name, legal + " (default " + NumberText(otherwise) + ")");
  if (text == nullptr) return otherwise;
  double value = 0;
  if (!Parse(*text, value) || !std::isfinite(value) || value < min || value > max) Refuse(name, *text, legal);
  return value;
}

std::optional<float> OptionReader::NonZero(const std::string& name) {
  const std::string legal = "none, or a finite number other than 0";
  const std::string text = Text(name, "none", legal);
  if (text == "none") return std::nullopt;
  float value = 0;
  if (!Parse(text, value) || !std::isfinite(value) || value == 0) Refuse(name, text, legal);
  return value;
}

std::vector<int64_t> OptionReader::Integers(const std::string& name, const std::vector<int64_t>& otherwise,
                                            Range values, Range count) {
  const std::string preset = ListText(otherwise);
  const std::string legal = CountText(count) + " separated by commas, such as " + preset + ", each " +
                            RangeText("a whole number", values.min, values.max);
  const std::string* text = Find(name, legal + " (default " + preset + ")");
  if (text == nullptr) return otherwise;
  std::vector<int64_t> numbers;
  for (const std::string& part : Split(*text)) {
    int64_t value = 0;
    if (!Parse(part, value) || value < values.min || value > values.max) Refuse(name, *text, legal);
    numbers.push_back(value);
  }
  const auto found = static_cast<int64_t>(numbers.size());
  if (found < count.min || found > count.max) Refuse(name, *text, legal);
  return numbers;
}

std::array<float, 3> OptionReader::Channels(const std::string& name, const std::array<float, 3>& otherwise,
                                            double min, double max) {
  const std::string preset =
      NumberText(otherwise[0]) + "," + NumberText(otherwise[1]) + "," + NumberText(otherwise[2]);
  const std::string legal = "3 numbers separated by commas, one for each channel of pixels from 0 to 1, " +
                            RangeText("each", min, max);
  const std::string* text = Find(name, legal + " (default " + preset + ")");
  if (text == nullptr) return otherwise;
  const std::vector<std::string> parts = Split(*text);
  std::array<float, 3> values{};
  if (parts.size() != values.size()) Refuse(name, *text, legal);
  for (size_t i = 0; i < values.size(); ++i) {
    double value = 0;
    // The comparison is false for NaN too.
    if (!Parse(parts[i], value) || !(value >= min && value <= max)) Refuse(name, *text, legal);
    values[i] = static_cast<float>(value);
  }
  return values;
}

std::array<int64_t, 4> OptionReader::Blocks(const std::array<int64_t, 4>& otherwise, int64_t max) {
  const std::vector<int64_t> counts =
      Integers("blocks", {otherwise.begin(), otherwise.end()}, {1, max}, {4, 4});
  std::array<int64_t, 4> blocks{};
  std::copy(counts.begin(), counts.end(), blocks.begin());
  return blocks;
}

int64_t OptionReader::PowerOfTwoHeads(int64_t otherwise) {
  return std::stoll(Choice("heads", std::to_string(otherwise), {"1", "2", "4", "8"}));
}

std::vector<std::string> OptionReader::Several(const std::string& name, const std::string& otherwise,
                                               const std::vector<std::string>& legal) {
  const std::string rule =
      "none, or a list separated by commas, each at most once, of " + Joined(legal, ", ");
  const std::string* given = Find(name, rule + " (default " + otherwise + ")");
  const std::string& text = given == nullptr ? otherwise : *given;
  if (text == "none") return {};
  const std::vector<std::string> parts = Split(text);
  std::vector<std::string> chosen;
  for (const std::string& one : legal) {
    if (std::find(parts.begin(), parts.end(), one) != parts.end()) chosen.push_back(one);
  }
  // The counts are equal only if each part is legal and occurs once.
  if (chosen.size() != parts.size()) Refuse(name, text, rule);
  return chosen;
}

std::string OptionReader::Text(const std::string& name, const std::string& otherwise,
                               const std::string& legal) {
  const std::string* text = Find(name, legal + " (default " + otherwise + ")");
  return text == nullptr ? otherwise : *text;
}

void OptionReader::RefuseOthers() const {
  for (const auto& [name, value] : options_) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) continue;
    throw LoadError(architecture_ + ": there is no option " + Quote(name) + "; the options are:" + legal_);
  }
}

}  // namespace saccade::models
