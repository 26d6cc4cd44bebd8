#include "client/cli/output/tiff.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace saccade::client {
namespace {

enum Tag : uint16_t {
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kImageDescription = 270,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kXResolution = 282,
  kYResolution = 283,
  kResolutionUnit = 296,
  kSampleFormat = 339,
};

enum FieldType : uint16_t { kAscii = 2, kShort = 3, kLong = 4, kRational = 5 };

struct Field {
  Tag tag;
  FieldType type;
  uint32_t count;
  // The value, or its offset if it needs more than four bytes. A short's two bytes come first, as in a long.
  uint32_t value;
};

constexpr int64_t kHeaderBytes = 8;
constexpr int64_t kRationalBytes = 8;
// The number of fields, and the offset of the next page.
constexpr int64_t kPageBytes = 2 + 4;
constexpr int64_t kFieldBytes = 12;
constexpr int64_t kFields = 13;

// Aligns elements of four bytes.
constexpr int64_t Aligned(int64_t offset) { return (offset + 3) / 4 * 4; }

void Put(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFF);
}

void PutPage(std::string& out, const std::vector<Field>& fields, int64_t next) {
  Put(out, fields.size(), 2);
  for (const Field& field : fields) {
    Put(out, field.tag, 2);
    Put(out, field.type, 2);
    Put(out, field.count, 4);
    Put(out, field.value, 4);
  }
  Put(out, static_cast<uint64_t>(next), 4);
}

std::string Describe(const VolumeShape& shape, float min, float max) {
  std::string text = absl::StrCat("ImageJ=1.53t\nimages=", shape.depth, "\nslices=", shape.depth, "\n");
  if (std::isfinite(min) && std::isfinite(max) && min < max) {
    absl::StrAppendFormat(&text, "min=%.9g\nmax=%.9g\n", min, max);
  }
  // The terminating zero is part of the text.
  text += '\0';
  text.resize(static_cast<size_t>(Aligned(static_cast<int64_t>(text.size()))));
  return text;
}

}  // namespace

absl::StatusOr<std::string> TiffHead(const VolumeShape& shape, float min, float max) {
  const std::string description = Describe(shape, min, max);
  const int64_t rational_at = kHeaderBytes;
  const int64_t description_at = rational_at + kRationalBytes;
  const int64_t pages_at = description_at + static_cast<int64_t>(description.size());
  const int64_t page_bytes = kPageBytes + kFields * kFieldBytes;
  // The first page has one more field: its description.
  const int64_t voxels_at = Aligned(pages_at + shape.depth * page_bytes + kFieldBytes);
  const int64_t plane_bytes = shape.Bytes() / shape.depth;
  if (shape.Bytes() > std::numeric_limits<uint32_t>::max() - voxels_at) {
    return absl::OutOfRangeError(
        absl::StrCat("the volume is ", shape.Bytes(),
                     " bytes; a TIFF file is limited to 4 GiB; --raw writes only the "
                     "voxels"));
  }

  std::string head = "II*";
  Put(head, 0, 1);
  Put(head, static_cast<uint64_t>(pages_at), 4);
  Put(head, 1, 4);
  Put(head, 1, 4);
  head += description;
  const auto small = [](int64_t number) { return static_cast<uint32_t>(number); };
  for (int plane = 0; plane < shape.depth; ++plane) {
    std::vector<Field> fields = {{kImageWidth, kLong, 1, small(shape.width)},
                                 {kImageLength, kLong, 1, small(shape.height)},
                                 {kBitsPerSample, kShort, 1, small(8 * shape.VoxelBytes())},
                                 {kCompression, kShort, 1, 1},
                                 {kPhotometric, kShort, 1, 1}};
    if (plane == 0) {
      fields.push_back({kImageDescription, kAscii, small(static_cast<int64_t>(description.size())),
                        small(description_at)});
    }
    fields.insert(fields.end(), {{kStripOffsets, kLong, 1, small(voxels_at + plane * plane_bytes)},
                                 {kSamplesPerPixel, kShort, 1, 1},
                                 {kRowsPerStrip, kLong, 1, small(shape.height)},
                                 {kStripByteCounts, kLong, 1, small(plane_bytes)},
                                 {kXResolution, kRational, 1, small(rational_at)},
                                 {kYResolution, kRational, 1, small(rational_at)},
                                 {kResolutionUnit, kShort, 1, 1},
                                 {kSampleFormat, kShort, 1, shape.type == VoxelType::kFloat32 ? 3u : 1u}});
    const int64_t here = static_cast<int64_t>(head.size());
    const int64_t bytes = kPageBytes + static_cast<int64_t>(fields.size()) * kFieldBytes;
    PutPage(head, fields, plane + 1 == shape.depth ? 0 : here + bytes);
  }
  head.resize(static_cast<size_t>(voxels_at));
  return head;
}

}  // namespace saccade::client
