#include "models/described/json_tree.h"

#include <cstdint>
#include <set>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/weights/format/json_reader.h"

namespace saccade::models {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr int kMaxDepth = 16;
constexpr int64_t kMaxValues = 200'000;

using Kind = JsonValue::Kind;

// Recurses at most kMaxDepth times.
class TreeReader {
 public:
  explicit TreeReader(std::string_view text) : reader_(text) {}

  JsonValue ReadAll() {
    JsonValue value = Read(0);
    reader_.ExpectEnd();
    return value;
  }

 private:
  JsonValue Read(int depth) {
    if (depth == kMaxDepth) reader_.Fail("more than " + std::to_string(kMaxDepth) + " levels");
    if (++values_ > kMaxValues) reader_.Fail("more than " + std::to_string(kMaxValues) + " values");
    JsonValue value;
    switch (reader_.Peek()) {
      case '{':
        ReadMembers(depth, value);
        return value;
      case '[':
        ReadItems(depth, value);
        return value;
      case '"':
        value.kind = Kind::kText;
        value.text = reader_.ReadString();
        return value;
      default:
        break;
    }
    if (reader_.AcceptWord("null")) return value;
    value.flag = reader_.AcceptWord("true");
    if (value.flag || reader_.AcceptWord("false")) {
      value.kind = Kind::kFlag;
      return value;
    }
    value.kind = Kind::kNumber;
    value.number = reader_.ReadNumber();
    return value;
  }

  void ReadMembers(int depth, JsonValue& value) {
    value.kind = Kind::kObject;
    reader_.Expect('{');
    if (reader_.Accept('}')) return;
    std::set<std::string> names;
    do {
      std::string name = reader_.ReadString();
      if (!names.insert(name).second) reader_.Fail("the name " + Quote(name) + " is used twice");
      reader_.Expect(':');
      value.members.emplace_back(std::move(name), Read(depth + 1));
    } while (reader_.Accept(','));
    reader_.Expect('}');
  }

  void ReadItems(int depth, JsonValue& value) {
    value.kind = Kind::kList;
    reader_.Expect('[');
    if (reader_.Accept(']')) return;
    do {
      value.items.push_back(Read(depth + 1));
    } while (reader_.Accept(','));
    reader_.Expect(']');
  }

  JsonReader reader_;
  int64_t values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

const char* NameOf(JsonValue::Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kFlag:
      return "true or false";
    case Kind::kNumber:
      return "a number";
    case Kind::kText:
      return "a text";
    case Kind::kList:
      return "a list";
    case Kind::kObject:
      break;
  }
  return "an object";
}

JsonValue ParseJsonTree(std::string_view text) {
  if (text.size() > kMaxBytes)
    throw LoadError("the JSON has " + std::to_string(text.size()) + " bytes, expected at most " +
                    std::to_string(kMaxBytes));
  return TreeReader(text).ReadAll();
}

}  // namespace saccade::models
