#include "client/cli/input/inputs.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

bool IsOfKind(const std::filesystem::path& path, const FileKind& kind) {
  const std::string ending = absl::AsciiStrToLower(path.extension().string());
  return std::find(kind.endings.begin(), kind.endings.end(), ending) != kind.endings.end();
}

// Returns the files that match the pattern, unsorted.
std::vector<std::string> Matching(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

// Removes the digits at the beginning of `text` and returns them without leading zeros.
absl::string_view TakeNumber(absl::string_view& text) {
  size_t zeros = 0;
  while (zeros < text.size() && text[zeros] == '0') ++zeros;
  size_t end = zeros;
  while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
  const absl::string_view number = text.substr(zeros, end - zeros);
  text.remove_prefix(end);
  return number;
}

bool StartsWithDigit(absl::string_view text) {
  return !text.empty() && absl::ascii_isdigit(static_cast<unsigned char>(text.front()));
}

}  // namespace

const FileKind kPictureFiles = {"JPEG, PNG, WebP, TIFF or BMP",
                                {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp"}};
const FileKind kVideoFiles = {"MP4, MOV, Matroska, WebM or AVI",
                              {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi"}};
const FileKind kVolumeFiles = {"TIFF", {".tif", ".tiff"}};

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder, const FileKind& kind) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (IsOfKind(at->path(), kind) && !at->is_directory(error)) files.push_back(at->path().string());
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot be read: ", error.message()));
  if (files.empty()) return absl::NotFoundError(absl::StrCat("has no ", kind.what, " files in it"));
  std::sort(files.begin(), files.end(), ComesBefore);
  return files;
}

absl::StatusOr<std::vector<std::string>> ExpandInputs(const std::vector<std::string>& inputs,
                                                      const FileKind& kind) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code ignored;
    std::vector<std::string> found;
    if (std::filesystem::is_directory(input, ignored)) {
      auto in_folder = FilesIn(input, kind);
      if (!in_folder.ok())
        return absl::Status(in_folder.status().code(),
                            absl::StrCat(input, " ", in_folder.status().message()));
      found = *std::move(in_folder);
    } else if (input.find_first_of("*?[") != std::string::npos && !std::filesystem::exists(input, ignored)) {
      found = Matching(input);
      if (found.empty()) return absl::NotFoundError(absl::StrCat(input, " matches no file"));
      std::sort(found.begin(), found.end(), ComesBefore);
    } else {
      found = {input};
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

bool ComesBefore(absl::string_view one, absl::string_view other) {
  const absl::string_view whole_one = one, whole_other = other;
  while (!one.empty() && !other.empty()) {
    if (StartsWithDigit(one) && StartsWithDigit(other)) {
      const absl::string_view number = TakeNumber(one), other_number = TakeNumber(other);
      if (number.size() != other_number.size()) return number.size() < other_number.size();
      if (number != other_number) return number < other_number;
    } else {
      if (one.front() != other.front()) return one.front() < other.front();
      one.remove_prefix(1);
      other.remove_prefix(1);
    }
  }
  if (one.empty() != other.empty()) return one.empty();
  // The texts differ only in leading zeros: any consistent order will do.
  return whole_one < whole_other;
}

}  // namespace saccade::client
