#include "server/repository/config_lines.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

namespace pb = google::protobuf;

// Maximum number of elements of a list of scalars that are recorded; for others, LineOf returns the line of
// the list.
constexpr int kMaxElements = 256;

std::string KeyOf(const pb::Message& entry) {
  const pb::FieldDescriptor* key = entry.GetDescriptor()->map_key();
  const pb::Reflection* reflection = entry.GetReflection();
  switch (key->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection->GetUInt64(entry, key));
    default:
      return reflection->GetString(entry, key);
  }
}

}  // namespace

std::string MapEntryPath(absl::string_view map, absl::string_view key) {
  return absl::StrCat(map, "['", absl::CHexEscape(key.substr(0, 64)), "']");
}

ConfigLines::ConfigLines(const pb::Message& message, const pb::TextFormat::ParseInfoTree& locations) {
  Walk(message, locations, "");
}

void ConfigLines::Walk(const pb::Message& message, const pb::TextFormat::ParseInfoTree& locations,
                       const std::string& prefix) {
  const pb::Reflection* const reflection = message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const pb::FieldDescriptor* const field = message.GetDescriptor()->field(i);
    const bool is_message = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    const std::string path = absl::StrCat(prefix, field->name());
    if (!field->is_repeated()) {
      const int line = locations.GetLocation(field, -1).line;
      if (line < 0) continue;
      Add(path, line + 1, false);
      const auto* nested = is_message ? locations.GetTreeForNested(field, -1) : nullptr;
      if (nested != nullptr) Walk(reflection->GetMessage(message, field), *nested, path + ".");
      continue;
    }
    const int size = reflection->FieldSize(message, field);
    for (int j = 0; j < (is_message ? size : std::min(size, kMaxElements)); ++j) {
      const int line = locations.GetLocation(field, j).line + 1;
      if (j == 0) Add(path, line, false);
      std::string element = absl::StrCat(path, "[", j, "]");
      if (is_message) {
        const pb::Message& item = reflection->GetRepeatedMessage(message, field, j);
        const auto* const nested = locations.GetTreeForNested(field, j);
        if (field->is_map()) {
          element = MapEntryPath(path, KeyOf(item));
          WalkEntry(item, nested, element);
        } else if (nested != nullptr) {
          Walk(item, *nested, element + ".");
        }
      }
      Add(std::move(element), line, field->is_map());
    }
  }
}

void ConfigLines::WalkEntry(const pb::Message& entry, const pb::TextFormat::ParseInfoTree* locations,
                            const std::string& path) {
  const pb::FieldDescriptor* const value = entry.GetDescriptor()->map_value();
  if (locations == nullptr || value->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) return;
  const auto* const nested = locations->GetTreeForNested(value, -1);
  if (nested != nullptr) Walk(entry.GetReflection()->GetMessage(entry, value), *nested, path + ".");
}

void ConfigLines::Add(std::string path, int line, bool is_map_entry) {
  const auto [at, is_new] = lines_.try_emplace(std::move(path), line);
  if (!is_new && is_map_entry) repeated_keys_.push_back(at->first);
  // If a key occurs more than once, the last entry is effective.
  at->second = line;
}

int ConfigLines::LineOf(absl::string_view path) const {
  while (!path.empty()) {
    if (const auto found = lines_.find(path); found != lines_.end()) return found->second;
    const size_t end = path.find_last_of(".[");
    path = path.substr(0, end == absl::string_view::npos ? 0 : end);
  }
  return 0;
}

}  // namespace saccade::server
