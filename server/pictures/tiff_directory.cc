#include "server/pictures/tiff_directory.h"

#include <bitset>
#include <cstddef>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Tags of one directory. libtiff compares every tag with every other one, and sorts its list of known tags
// for each unknown one. Camera files have about 80.
constexpr uint64_t kMaxTags = 256;
// Different tags of all directories, because libtiff keeps its list from page to page.
constexpr size_t kMaxTagKinds = 512;
// Bytes of the tags of one directory. libtiff may hold each in two copies, and bytes as numbers of eight
// bytes. Colour profiles, texts and thumbnails stay below 4 MiB.
constexpr uint64_t kMaxTagBytes = uint64_t{8} << 20;

// Reads integers in the file's byte order. Bytes beyond the end read as zero.
class TiffBytes {
 public:
  explicit TiffBytes(std::string_view bytes) : bytes_(bytes), big_endian_(bytes.substr(0, 2) == "MM") {}

  bool has(uint64_t at, uint64_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }
  uint64_t number(uint64_t at, int size) const {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) {
      const uint64_t from = at + (big_endian_ ? i : size - 1 - i);
      value = value << 8 | (has(from, 1) ? static_cast<uint8_t>(bytes_[from]) : 0);
    }
    return value;
  }
  size_t size() const { return bytes_.size(); }

 private:
  const std::string_view bytes_;
  const bool big_endian_;
};

// Sizes of the fields of a directory, which differ between TIFF and BigTIFF.
struct Widths {
  int tags;    // the number of entries
  int number;  // counts and offsets
  uint64_t entry() const { return 4 + 2 * uint64_t(number); }
};

// Bytes of one value of a tag's type; 0 for unknown types, which libtiff does not read.
uint64_t BytesOfType(uint64_t type) {
  static constexpr uint8_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

// The positions and lengths of strips and tiles, of which there are as many as a large picture needs.
bool IsPosition(uint64_t tag) { return tag == 273 || tag == 279 || tag == 324 || tag == 325; }

absl::Status TooMuch(const std::string& found, const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("the TIFF cannot be read: ", found, "; ", allowed,
                   ", so save it again without layers and private tags, or send it as PNG"));
}

class TagChecker {
 public:
  explicit TagChecker(std::string_view bytes) : bytes_(bytes) {}

  absl::Status Check(int64_t max_pages) {
    const bool big = bytes_.number(2, 2) == 43;
    const Widths widths = big ? Widths{.tags = 8, .number = 8} : Widths{.tags = 2, .number = 4};
    uint64_t at = big ? bytes_.number(8, 8) : bytes_.number(4, 4);
    for (int64_t page = 0; page < max_pages && at != 0; ++page) {
      const uint64_t tags = bytes_.number(at, widths.tags);
      if (tags > kMaxTags) {
        return TooMuch(absl::StrCat("page ", page, " has ", tags, " tags"),
                       absl::StrCat("at most ", kMaxTags, " are accepted"));
      }
      const uint64_t entries = at + widths.tags;
      const uint64_t length = widths.tags + tags * widths.entry() + widths.number;
      if (!bytes_.has(at, length)) return absl::OkStatus();
      directories_ += length;
      if (directories_ > bytes_.size())
        return TooMuch("its pages overlap", "pages must not share their tags");
      if (absl::Status few = CheckPage(page, entries, tags, widths); !few.ok()) return few;
      at = bytes_.number(entries + tags * widths.entry(), widths.number);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckPage(int64_t page, uint64_t entries, uint64_t tags, const Widths& widths) {
    uint64_t extra = 0;
    for (uint64_t at = entries; at < entries + tags * widths.entry(); at += widths.entry()) {
      const uint64_t tag = bytes_.number(at, 2);
      kinds_.set(tag);
      const uint64_t size = DataBytes(at, widths);
      all_ += size;
      if (!IsPosition(tag)) extra += size;
    }
    if (kinds_.count() > kMaxTagKinds) {
      return TooMuch(absl::StrCat("its pages have ", kinds_.count(), " different tags"),
                     absl::StrCat("at most ", kMaxTagKinds, " are accepted"));
    }
    if (extra > kMaxTagBytes) {
      return TooMuch(absl::StrCat("the tags of page ", page, " hold ", extra, " bytes"),
                     absl::StrCat("at most ", kMaxTagBytes, " bytes are accepted"));
    }
    if (all_ > bytes_.size()) {
      return TooMuch(absl::StrCat("its tags hold ", all_, " bytes, but the file only ", bytes_.size()),
                     "tags must not share their data");
    }
    return absl::OkStatus();
  }

  // Bytes of an entry's data outside of the entry; 0 if they are not all in the file.
  uint64_t DataBytes(uint64_t entry, const Widths& widths) const {
    const uint64_t one = BytesOfType(bytes_.number(entry + 2, 2));
    const uint64_t count = bytes_.number(entry + 4, widths.number);
    if (one == 0 || count > bytes_.size() / one) return 0;
    const uint64_t size = one * count;
    if (size <= uint64_t(widths.number)) return 0;
    return bytes_.has(bytes_.number(entry + 4 + widths.number, widths.number), size) ? size : 0;
  }

  const TiffBytes bytes_;
  std::bitset<65536> kinds_;
  // Bytes of the directories so far, and of their tags' data.
  uint64_t directories_ = 0;
  uint64_t all_ = 0;
};

}  // namespace

absl::Status CheckTiffTags(std::string_view bytes, int64_t max_pages) {
  return TagChecker(bytes).Check(max_pages);
}

}  // namespace saccade::server
