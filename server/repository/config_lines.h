// Where in config.pbtxt each field stands.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace saccade::server {

// Fields are named by their way from the top: "instance_group[1].count", with a map's entries by their keys:
// "parameters['weight']".
class ConfigLines {
 public:
  ConfigLines() = default;
  // REQUIRES: `message` was parsed with `locations`, and nobody has looked at one of its maps since.
  ConfigLines(const google::protobuf::Message& message,
              const google::protobuf::TextFormat::ParseInfoTree& locations);

  // Whether the text has the field, be it with its default value.
  bool Has(absl::string_view path) const { return lines_.find(path) != lines_.end(); }

  // Counted from 1. Of a field that the text lacks, the line of what it would stand in; 0 if that is the
  // whole file.
  int LineOf(absl::string_view path) const;

  // Entries of maps whose key an earlier line has too.
  const std::vector<std::string>& repeated_keys() const { return repeated_keys_; }

 private:
  void Walk(const google::protobuf::Message& message,
            const google::protobuf::TextFormat::ParseInfoTree& locations, const std::string& prefix);
  // A map's entry, whose value's fields follow the entry's own path.
  void WalkEntry(const google::protobuf::Message& entry,
                 const google::protobuf::TextFormat::ParseInfoTree* locations, const std::string& path);
  void Add(std::string path, int line, bool is_map_entry);

  std::map<std::string, int, std::less<>> lines_;
  std::vector<std::string> repeated_keys_;
};

// "a['key']" of a map's entry, with the key fit to be printed.
std::string MapEntryPath(absl::string_view map, absl::string_view key);

}  // namespace saccade::server
