// Maps the fields of a config.pbtxt to their lines.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace saccade::server {

// Fields are identified by their path from the top, "instance_group[1].count"; entries of maps by their keys,
// "parameters['weight']".
class ConfigLines {
 public:
  ConfigLines() = default;
  // REQUIRES: `message` was parsed with `locations`, and none of its maps has been accessed since.
  ConfigLines(const google::protobuf::Message& message,
              const google::protobuf::TextFormat::ParseInfoTree& locations);

  // Whether the text contains the field, even if with its default value.
  bool Has(absl::string_view path) const { return lines_.find(path) != lines_.end(); }

  // Line of the field, counted from 1. For a field that the text lacks, the line of the enclosing field; 0 if
  // that is the whole file.
  int LineOf(absl::string_view path) const;

  // Paths of map entries whose key occurred before.
  const std::vector<std::string>& repeated_keys() const { return repeated_keys_; }

 private:
  void Walk(const google::protobuf::Message& message,
            const google::protobuf::TextFormat::ParseInfoTree& locations, const std::string& prefix);
  // Visits a map entry. The fields of its value have paths directly below `path`.
  void WalkEntry(const google::protobuf::Message& entry,
                 const google::protobuf::TextFormat::ParseInfoTree* locations, const std::string& path);
  void Add(std::string path, int line, bool is_map_entry);

  std::map<std::string, int, std::less<>> lines_;
  std::vector<std::string> repeated_keys_;
};

// Returns "a['key']" for a map's entry, with the key escaped and truncated.
std::string MapEntryPath(absl::string_view map, absl::string_view key);

}  // namespace saccade::server
