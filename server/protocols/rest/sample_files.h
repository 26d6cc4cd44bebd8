// A model's sample files, as clients may read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace saccade::server {

struct SampleFile {
  // A file name: UTF-8, without '/'. Unique among the model's samples.
  std::string name;
  std::string path;
  // "image/png" and so on, from the name's ending.
  std::string type;
  int64_t bytes = 0;
};

// The regular files among `paths` (ModelSettings::samples) whose names end like a picture, a video or a TIFF,
// in the same order. Files that are gone, links that have taken their place, empty ones, and ones of more
// than `max_bytes` are left out. Blocks on the file system.
std::vector<SampleFile> SampleFiles(absl::Span<const std::string> paths, int64_t max_bytes);

// NOT_FOUND if there is no sample of this name.
absl::StatusOr<SampleFile> FindSample(absl::Span<const SampleFile> samples, absl::string_view name);

// Reads the file. UNAVAILABLE if it has changed since it was listed, or cannot be read. Never follows a link,
// and never reads more than sample.bytes. Blocks on the file system.
absl::StatusOr<std::string> ReadSample(const SampleFile& sample);

}  // namespace saccade::server
