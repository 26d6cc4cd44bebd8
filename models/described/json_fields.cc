#include "models/described/json_fields.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

std::string Plain(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(std::llround(value));
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

std::string Bounds(const char* what, double min, double max) {
  return std::string(what) + " from " + Plain(min) + " to " + Plain(max);
}

// Levenshtein's distance, for names of a few letters.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Resembling(const std::string& name, const std::vector<std::string>& names) {
  constexpr size_t kMaxLetters = 64;
  if (name.size() > kMaxLetters) return "";
  std::string best;
  size_t least = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& known : names) {
    const size_t distance = Distance(name, known);
    if (distance >= least) continue;
    least = distance;
    best = known;
  }
  return best;
}

JsonFields::JsonFields(std::string where, const JsonValue& value) : where_(std::move(where)), value_(value) {
  if (value.kind == JsonValue::Kind::kObject) return;
  throw LoadError((where_.empty() ? "the document" : where_) + " is " + NameOf(value.kind) +
                  ", expected an object");
}

std::string JsonFields::PathOf(const std::string& name) const {
  return where_.empty() ? name : where_ + "." + name;
}

void JsonFields::Refuse(const std::string& name, const std::string& is, const std::string& expected) const {
  throw LoadError(PathOf(name) + " is " + is + ", expected " + expected);
}

const JsonValue* JsonFields::Take(const std::string& name) {
  known_.push_back(name);
  return value_.Find(name);
}

const JsonValue& JsonFields::Of(const JsonValue* value, JsonValue::Kind kind, const std::string& name) const {
  if (value->kind != kind) Refuse(name, NameOf(value->kind), NameOf(kind));
  return *value;
}

std::string JsonFields::Text(const std::string& name, const std::string& otherwise) {
  constexpr size_t kMaxBytes = 256;
  const JsonValue* value = Take(name);
  if (value == nullptr) return otherwise;
  const std::string& text = Of(value, JsonValue::Kind::kText, name).text;
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (text.empty() || text.size() > kMaxBytes || std::any_of(text.begin(), text.end(), control))
    Refuse(name, Quote(text), "1 to " + std::to_string(kMaxBytes) + " printable characters");
  return text;
}

std::string JsonFields::Choice(const std::string& name, const std::string& otherwise,
                               const std::vector<std::string>& legal) {
  std::string text = Text(name, otherwise);
  if (std::find(legal.begin(), legal.end(), text) != legal.end()) return text;
  const std::string near = Resembling(text, legal);
  Refuse(name, Quote(text),
         Joined(legal, " or ") + (near.empty() ? "" : "; did you mean " + Quote(near) + "?"));
}

bool JsonFields::Flag(const std::string& name, bool otherwise) {
  const JsonValue* value = Take(name);
  return value == nullptr ? otherwise : Of(value, JsonValue::Kind::kFlag, name).flag;
}

double JsonFields::Number(const std::string& name, double otherwise, double min, double max) {
  const JsonValue* value = Take(name);
  if (value == nullptr) return otherwise;
  const double number = Of(value, JsonValue::Kind::kNumber, name).number;
  if (!(number >= min && number <= max)) Refuse(name, Plain(number), Bounds("a number", min, max));
  return number;
}

int64_t JsonFields::Integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max) {
  const auto low = static_cast<double>(min);
  const auto high = static_cast<double>(max);
  const JsonValue* value = Take(name);
  if (value == nullptr) return otherwise;
  const double number = Of(value, JsonValue::Kind::kNumber, name).number;
  if (!(number >= low && number <= high) || number != std::floor(number))
    Refuse(name, Plain(number), Bounds("a whole number", low, high));
  return static_cast<int64_t>(number);
}

std::vector<double> JsonFields::Numbers(const std::string& name, const std::vector<double>& otherwise,
                                        size_t min_count, size_t max_count, double min, double max) {
  const JsonValue* value = Take(name);
  if (value == nullptr) return otherwise;
  const std::string count = min_count == max_count
                                ? std::to_string(max_count)
                                : std::to_string(min_count) + " to " + std::to_string(max_count);
  const std::string expected = count + " numbers, " + Bounds("each", min, max);
  std::vector<double> numbers;
  if (value->kind == JsonValue::Kind::kNumber) {
    numbers.assign(min_count, value->number);
  } else {
    for (const JsonValue& item : Of(value, JsonValue::Kind::kList, name).items) {
      if (item.kind != JsonValue::Kind::kNumber)
        Refuse(name, "a list with " + std::string(NameOf(item.kind)), expected);
      numbers.push_back(item.number);
    }
  }
  if (numbers.size() < min_count || numbers.size() > max_count)
    Refuse(name, "a list of " + std::to_string(numbers.size()), expected);
  for (const double number : numbers) {
    if (!(number >= min && number <= max)) Refuse(name, "a list with " + Plain(number), expected);
  }
  return numbers;
}

void JsonFields::RefuseOthers() const {
  for (const auto& [name, member] : value_.members) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string near = Resembling(name, known_);
    throw LoadError(
        "there is no key " + Quote(name) + " in " + (where_.empty() ? "the description" : where_) +
        (near.empty() ? "; the keys are " + Joined(known_, ", ") : "; did you mean " + Quote(near) + "?"));
  }
}

}  // namespace saccade::models
