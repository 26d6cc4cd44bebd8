#include "client/cli/frames.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace saccade::client {
namespace {

bool IsPicture(const std::filesystem::path& path) {
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  for (const char* known : {".jpg", ".jpeg", ".png", ".webp", ".bmp"}) {
    if (extension == known) return true;
  }
  return false;
}

// The digits at the beginning of `text`, which loses them; leading zeros are none.
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

absl::StatusOr<std::vector<std::string>> FramesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (IsPicture(at->path()) && !at->is_directory(error)) files.push_back(at->path().string());
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat("cannot be read: ", error.message()));
  if (files.empty()) return absl::NotFoundError("has no JPEG, PNG, WebP or BMP files in it");
  std::sort(files.begin(), files.end(), ComesBefore);
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
  // Equal but for zeros: any order will do, as long as it is one.
  return whole_one < whole_other;
}

}  // namespace saccade::client
