// A small JSON document as a tree. Does not include LibTorch.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saccade::models {

struct JsonValue {
  enum class Kind { kNull, kFlag, kNumber, kText, kList, kObject };

  Kind kind = Kind::kNull;
  bool flag = false;
  double number = 0;
  std::string text = {};
  std::vector<JsonValue> items = {};
  // In the order of the document; no name occurs twice.
  std::vector<std::pair<std::string, JsonValue>> members = {};

  // Returns the member of that name; null if there is none, or if this is no object. Looks at one member
  // after the other.
  const JsonValue* Find(std::string_view name) const;
};

// Returns "a number", "an object", for messages.
const char* NameOf(JsonValue::Kind kind);

// Parses a document of at most 4 MiB, 16 levels and 200,000 values. Throws a LoadError that says what is
// wrong at which byte.
JsonValue ParseJsonTree(std::string_view text);

}  // namespace saccade::models
