// Reads a JSON object's members with checks. Every error names the member, what it is and what was expected.
// Does not include LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/described/json_tree.h"

namespace saccade::models {

class JsonFields {
 public:
  // `where` is the path of the object in errors, as in "head"; empty for the document itself. Throws a
  // LoadError if `value` is no object. `value` must outlive this object.
  JsonFields(std::string where, const JsonValue& value);

  // Returns the member, and remembers that it is known; null if it is missing.
  const JsonValue* Take(const std::string& name);

  // Each returns `otherwise` if the member is missing, and throws a LoadError if it is not as expected.
  std::string Text(const std::string& name, const std::string& otherwise);
  std::string Choice(const std::string& name, const std::string& otherwise,
                     const std::vector<std::string>& legal);
  bool Flag(const std::string& name, bool otherwise);
  double Number(const std::string& name, double otherwise, double min, double max);
  int64_t Integer(const std::string& name, int64_t otherwise, int64_t min, int64_t max);
  // A list of `min_count` to `max_count` numbers; a single number stands for a list of `min_count` equal
  // ones.
  std::vector<double> Numbers(const std::string& name, const std::vector<double>& otherwise, size_t min_count,
                              size_t max_count, double min, double max);

  // Throws a LoadError for the first member that was not asked for, with the known name that resembles it.
  void RefuseOthers() const;

  [[noreturn]] void Refuse(const std::string& name, const std::string& is, const std::string& expected) const;
  std::string PathOf(const std::string& name) const;

 private:
  const JsonValue& Of(const JsonValue* value, JsonValue::Kind kind, const std::string& name) const;

  const std::string where_;
  const JsonValue& value_;
  std::vector<std::string> known_;
};

// Returns the one of `names` that differs from `name` by the fewest changed letters; empty if all differ by
// more than a third of its letters.
std::string Resembling(const std::string& name, const std::vector<std::string>& names);

}  // namespace saccade::models
