#include "server/decode/mp4_samples.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "server/pictures/picture_bytes.h"

namespace saccade::server {
namespace {

// A sample of 16-bit sound has two bytes; frames of videos have many more.
constexpr uint64_t kMinSampleBytes = 2;
// FFmpeg's index takes 24 bytes for each sample, so this is 96 MiB. A minute of uncompressed sound and video
// has about 3 million.
constexpr uint64_t kMaxSamples = uint64_t{4} << 20;

// FFmpeg allocates these tables, of up to 12 bytes for each entry, before it reads them. An entry takes at
// least four bytes of the file.
constexpr uint64_t kMinEntryBytes = 4;
constexpr const char* kTables[] = {"stco", "co64", "stsc", "stss", "stps", "stts", "ctts", "keys"};
constexpr const char* kGroups = "sbgp";

// Each entry of an edit list makes FFmpeg copy a part of the index, or all of it. Files of cameras and
// editors have one or two entries for each track.
constexpr uint64_t kMaxCopies = 4;

// FFmpeg allocates at most 2 GiB at once, and at least four bytes for each entry, so it fails at once if a
// table claims this many. The letters of a text are such a number: "trunk" or "keys" in a title is no table.
constexpr uint64_t kMinImpossible = uint64_t{1} << 29;

// FFmpeg compares the name of each text with those of all others. The names of most are short and known;
// those of `keys` and of ---- are the file's own. Files of cameras and shops have less than a hundred texts.
constexpr uint64_t kMaxTexts = 1024;
constexpr uint64_t kMaxNameBytes = uint64_t{128} << 10;

constexpr size_t kBoxHeader = 8;
constexpr size_t kLongBoxHeader = 16;
constexpr size_t kTypeOffset = 4;

// The first letters of all types that are looked for.
constexpr std::string_view kFirsts = "stckeui-";

uint64_t PossibleOrZero(uint64_t claimed) { return claimed < kMinImpossible ? claimed : 0; }

// The number of samples that a table claims whose type is at `at`; 0 if it is no table.
uint64_t ClaimedSamples(const PictureBytes& bytes, size_t at) {
  if (bytes.tag(at, "stsz") || bytes.tag(at, "stz2")) return bytes.big32(at + 12);
  if (bytes.tag(at, "trun")) return PossibleOrZero(bytes.big32(at + 8));
  return 0;
}

// The same for the entries of other tables.
uint64_t ClaimedEntries(const PictureBytes& bytes, size_t at) {
  if (bytes.tag(at, kGroups)) return bytes.big32(at + 12);
  const auto is_here = [&](const char* type) { return bytes.tag(at, type); };
  const bool is_table = std::any_of(std::begin(kTables), std::end(kTables), is_here);
  return is_table ? PossibleOrZero(bytes.big32(at + 8)) : 0;
}

// Whether the size field before a type can be that of a box. 0 means the rest of the file, and 1 a longer
// field. FFmpeg cuts a box that is longer than what is left, so there is no upper bound.
bool IsBox(const PictureBytes& bytes, size_t type) {
  const uint32_t size = bytes.big32(type - kTypeOffset);
  return size <= 1 || size >= kBoxHeader;
}

// The end of the box whose type is at `type`; that of the file if its size is none or beyond it.
size_t EndOf(const PictureBytes& bytes, size_t type) {
  const size_t begin = type - kTypeOffset;
  uint64_t size = bytes.big32(begin);
  if (size == 1) size = uint64_t{bytes.big32(begin + 8)} << 32 | bytes.big32(begin + 12);
  return size < kBoxHeader || size > bytes.size() - begin ? bytes.size() : begin + size;
}

// Whether a type at `type` is that of a box that names texts. Dashes may also be in a text; FFmpeg passes
// over those of a box that does not begin with one of these.
bool NamesTexts(const PictureBytes& bytes, size_t type) {
  if (bytes.tag(type, "keys")) return PossibleOrZero(bytes.big32(type + 8)) > 0;
  const size_t first = type + (bytes.big32(type - kTypeOffset) == 1 ? kLongBoxHeader : kBoxHeader);
  return bytes.tag(type, "----") &&
         (bytes.tag(first, "mean") || bytes.tag(first, "name") || bytes.tag(first, "data"));
}

// Entries of the edit list whose type is at `at`, within an outermost box. FFmpeg believes the size of the
// box, whatever number it states, and cuts a box to those around it.
uint64_t EditsOf(const PictureBytes& bytes, size_t at, size_t outermost_end) {
  constexpr size_t kBeforeEntries = 12;  // The type, the version with flags, and the number.
  const uint64_t entry = bytes.u8(at + 4) == 1 ? 20 : 12;
  const size_t end = std::min(EndOf(bytes, at), outermost_end);
  return end > at + kBeforeEntries ? (end - at - kBeforeEntries) / entry : 0;
}

// Bytes of the names in a box that names texts. FFmpeg reads three parts of ---- at most, and stops at the
// first one that is none of these.
uint64_t NameBytes(const PictureBytes& bytes, size_t type) {
  const size_t end = EndOf(bytes, type);
  if (bytes.tag(type, "keys")) return end - type;
  uint64_t names = 0;
  const bool is_long = bytes.big32(type - kTypeOffset) == 1;
  constexpr int kMaxParts = 3;
  size_t part = type - kTypeOffset + (is_long ? kLongBoxHeader : kBoxHeader);
  for (int i = 0; i < kMaxParts && part + kBoxHeader <= end; ++i) {
    const size_t next = EndOf(bytes, part + kTypeOffset);
    const bool is_name = bytes.tag(part + kTypeOffset, "mean") || bytes.tag(part + kTypeOffset, "name");
    if (!is_name && !bytes.tag(part + kTypeOffset, "data")) break;
    if (is_name) names += next - part;
    part = next;
  }
  return names;
}

class SampleCounter {
 public:
  explicit SampleCounter(std::string_view bytes)
      : bytes_(bytes),
        max_samples_(std::min<uint64_t>(kMaxSamples, bytes.size() / kMinSampleBytes)),
        max_entries_(bytes.size() / kMinEntryBytes) {}

  // Goes over the outermost boxes, which may be tables themselves. Only those of the data (mdat) cannot hold
  // any.
  absl::Status Count() {
    for (size_t at = 0; bytes_.has(at, kBoxHeader);) {
      uint64_t size = bytes_.big32(at);
      if (size == 1) size = uint64_t{bytes_.big32(at + 8)} << 32 | bytes_.big32(at + 12);
      if (size < kBoxHeader || size > bytes_.size() - at) size = bytes_.size() - at;
      if (!bytes_.tag(at + kTypeOffset, "mdat")) {
        if (absl::Status few = CountIn(at + kTypeOffset, at + size); !few.ok()) return few;
      }
      at += size;
    }
    return CheckEdits();
  }

 private:
  absl::Status CheckEdits() const {
    const uint64_t max_samples = kMaxCopies * max_samples_ / std::max<uint64_t>(edits_, kMaxCopies);
    if (samples_ <= max_samples) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the video cannot be read: its edit lists have ", edits_, " entries for ", samples_,
                     " samples; with so many, at most ", max_samples, " samples are accepted in a file of ",
                     bytes_.size(), " bytes, so write it again without edit lists"));
  }

  // Looks for tables at every position, because FFmpeg reads them inside of many kinds of boxes.
  absl::Status CountIn(size_t begin, size_t end) {
    for (size_t at = begin; at + 4 <= end; ++at) {
      const uint32_t first = bytes_.u8(at);
      if (kFirsts.find(static_cast<char>(first)) == std::string_view::npos || !IsBox(bytes_, at)) continue;
      if (bytes_.tag(at, "cmov")) {
        return absl::InvalidArgumentError(
            "the video cannot be read: its header is compressed (cmov), which is not accepted; write it "
            "again "
            "as MP4");
      }
      samples_ += ClaimedSamples(bytes_, at);
      if (samples_ > max_samples_) {
        return absl::InvalidArgumentError(absl::StrCat("the video cannot be read: its tables claim ",
                                                       samples_, " samples or more; at most ", max_samples_,
                                                       " are accepted in a file of ", bytes_.size(),
                                                       " bytes, so split it or write it again"));
      }
      entries_ += ClaimedEntries(bytes_, at);
      if (entries_ > max_entries_) {
        return absl::InvalidArgumentError(absl::StrCat("the video cannot be read: its tables claim ",
                                                       entries_, " entries or more, which a file of ",
                                                       bytes_.size(), " bytes cannot hold; write it again"));
      }
      if (bytes_.tag(at, "elst")) edits_ += EditsOf(bytes_, at, end);
      if (absl::Status few = CountTexts(at); !few.ok()) return few;
    }
    return absl::OkStatus();
  }

  // Counts the boxes in a list of texts, and the bytes of boxes that name texts.
  absl::Status CountTexts(size_t at) {
    if (bytes_.tag(at, "udta") || bytes_.tag(at, "ilst")) {
      const size_t end = EndOf(bytes_, at);
      const bool is_long = bytes_.big32(at - kTypeOffset) == 1;
      size_t text = at - kTypeOffset + (is_long ? kLongBoxHeader : kBoxHeader);
      for (; text + kBoxHeader <= end && texts_ <= kMaxTexts; ++texts_)
        text = EndOf(bytes_, text + kTypeOffset);
    }
    if (NamesTexts(bytes_, at)) name_bytes_ += NameBytes(bytes_, at);
    if (texts_ <= kMaxTexts && name_bytes_ <= kMaxNameBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the video cannot be read: it has ", texts_, " texts (udta, ilst) or more, and ",
                     name_bytes_, " bytes of names (keys, ----) or more; at most ", kMaxTexts, " and ",
                     kMaxNameBytes, " are accepted, so write it again without them"));
  }

  const PictureBytes bytes_;
  const uint64_t max_samples_;
  const uint64_t max_entries_;
  uint64_t samples_ = 0;
  uint64_t entries_ = 0;
  uint64_t edits_ = 0;
  uint64_t texts_ = 0;
  uint64_t name_bytes_ = 0;
};

}  // namespace

absl::Status CheckMp4Samples(std::string_view bytes) { return SampleCounter(bytes).Count(); }

}  // namespace saccade::server
