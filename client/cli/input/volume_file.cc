#include "client/cli/input/volume_file.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/input/input_file.h"
#include "client/cli/output/names.h"

namespace saccade::client {

absl::StatusOr<VolumeSource> OpenVolume(const std::string& path, const std::optional<VolumeShape>& raw) {
  const char* expected = raw ? "raw voxels" : "a TIFF file";
  const auto file = std::make_shared<std::ifstream>();
  const absl::Status status = OpenInput(path, expected, *file);
  if (!status.ok()) return status;
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return absl::FailedPreconditionError("has no known size; expected a file on disk");
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat("is empty; expected ", expected));
  if (raw && size != static_cast<uintmax_t>(raw->Bytes())) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", size, " bytes; expected ", raw->Bytes(), " for ", NameOf(*raw)));
  }
  VolumeSource source;
  source.bytes = static_cast<int64_t>(size);
  source.raw = raw;
  source.read = [file](char* to, size_t max) -> absl::StatusOr<size_t> {
    file->read(to, static_cast<std::streamsize>(max));
    if (file->gcount() == 0) return absl::DataLossError("was truncated while it was read");
    return static_cast<size_t>(file->gcount());
  };
  return source;
}

absl::StatusOr<VolumeShape> ParseShape(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, 'x');
  VolumeShape shape;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &shape.depth) ||
      !absl::SimpleAtoi(parts[1], &shape.height) || !absl::SimpleAtoi(parts[2], &shape.width) ||
      shape.depth < 1 || shape.height < 1 || shape.width < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a shape; expected DEPTHxHEIGHTxWIDTH such as 24x512x512"));
  }
  // Assumes the largest element type.
  const int64_t max = std::numeric_limits<int64_t>::max() / static_cast<int64_t>(sizeof(float));
  if (int64_t{shape.height} * shape.width > max / shape.depth) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is too large"));
  }
  return shape;
}

}  // namespace saccade::client
