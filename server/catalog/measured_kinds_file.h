// Stores the measurements of ModelKinds in a file, so that the next start need not repeat them.
#pragma once

#include <map>
#include <string>

#include "server/catalog/measured_kinds_text.h"

namespace saccade::server {

// Not thread-safe. Several daemons may use the same file: each replaces it as a whole, and the next one keeps
// what it finds there.
class MeasuredKindsFile {
 public:
  // `folder` holds one file per machine; Save() creates it. If `folder` is empty, nothing is stored.
  MeasuredKindsFile(std::string folder, MeasuredOn on);

  // Empty if there is no file. A file that is damaged, or of another machine or build, is logged and ignored.
  // Blocks on the file system.
  std::map<std::string, MeasuredKind> Load() const;

  // Replaces the file by `kinds` and those in it that are not among `kinds`. Either the old or the new file
  // is there, whenever the daemon ends. The first failure is logged. Blocks on the file system.
  void Save(std::map<std::string, MeasuredKind> kinds);

  const std::string& path() const { return path_; }

 private:
  const std::string folder_;
  const MeasuredOn on_;
  const std::string path_;
  bool failed_ = false;
};

}  // namespace saccade::server
