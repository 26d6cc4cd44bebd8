// Reads a TIFF in memory with libtiff: page by page as planes of voxels, or its first page as a picture.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/request.h"
#include "server/pictures/picture_formats.h"

namespace saccade::server {

struct TiffPage {
  int64_t width = 0;
  int64_t height = 0;
  VoxelType type = VoxelType::kUint8;

  friend bool operator==(const TiffPage&, const TiffPage&) = default;
};

// Size as stored; `orientation`, 1 to 8 as in EXIF, may swap the sides.
struct TiffPicture {
  int64_t width = 0;
  int64_t height = 0;
  int orientation = 1;
};

// Maximum of StoredPixels() of all pages together, if `pixels` may be shown. Tiles reach beyond a page at two
// sides, so twice as many are accepted, and always some for small pages.
constexpr int64_t MaxStoredPixels(int64_t pixels) { return std::max(2 * pixels, int64_t{16} << 20); }

// Not thread-safe; different files may be read concurrently.
class TiffFile {
 public:
  // Opens a file of which at most `max_pages` pages will be read. `bytes` must outlive the result. `wanted`,
  // if not null, is asked between strips and tiles while pixels are read, which ends with its error.
  // INVALID_ARGUMENT if they are not a TIFF or have more tags than CheckTiffTags accepts, RESOURCE_EXHAUSTED
  // if out of memory.
  static absl::StatusOr<std::unique_ptr<TiffFile>> Open(std::string_view bytes, int64_t max_pages,
                                                        std::function<absl::Status()> wanted = nullptr);
  ~TiffFile();
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  // Describes the current page, initially the first. INVALID_ARGUMENT if it is not greyscale, if its sample
  // type is not a VoxelType, or if its compression or the size of its tiles is not accepted.
  absl::StatusOr<TiffPage> Page();
  // Advances to the next page; false if there is none. INVALID_ARGUMENT if the file is damaged.
  absl::StatusOr<bool> Next();
  // Writes the current page's pixels to `out` as floats, row by row. `page` is the result of Page(), and
  // `out` has room for all its pixels. Decodes one strip or tile at a time. INVALID_ARGUMENT if the page is
  // damaged, RESOURCE_EXHAUSTED if out of memory.
  absl::Status Read(const TiffPage& page, float* out);

  // The current page's description (ImageDescription); empty if it has none. Valid until Next().
  std::string_view Description() const;

  // Describes the current page as a picture: grey of 1 to 16 bits, RGB or CIELab of 8 or 16, a palette of 1
  // to 8, CMYK or YCbCr of 8. INVALID_ARGUMENT, with its colours or libtiff's reason, if libtiff cannot
  // convert it to RGBA, or if its compression, its number of samples or the size of its tiles is not
  // accepted.
  absl::StatusOr<TiffPicture> Picture();
  // Number of pixels that decoding the current page produces: those of its tiles reach beyond the page.
  // REQUIRES: Page() or Picture() accepted the page.
  int64_t StoredPixels() const;
  // Adds the compressed bytes of the current page to those counted before. INVALID_ARGUMENT if they are
  // together many times the file, because strips or tiles share bytes, which are decoded for each of them, or
  // if a strip holds a JPEG that is taller.
  // REQUIRES: Page() or Picture() accepted the page.
  absl::Status CountStoredBytes();
  // Writes the picture's pixels, as stored, to `out`, which has room for all of them: 4 bytes each, red,
  // green, blue and alpha. INVALID_ARGUMENT if the page is damaged.
  absl::Status ReadPicture(const TiffPicture& picture, uint32_t* out);
  // Whether regions of the current page can be decoded without the rest: it has tiles, none of more than
  // kMaxTilePixels. INVALID_ARGUMENT, saying how to save it, if not. REQUIRES: Picture() accepted the page.
  absl::Status CheckRegions() const;
  // Width and height of the current page's tiles. REQUIRES: CheckRegions() returned OK.
  std::pair<int64_t, int64_t> TileSize() const;
  // The same for a region of the picture as stored, which lies within it. Decodes only the tiles that the
  // region touches.
  // REQUIRES: CheckRegions() returned OK.
  absl::Status ReadRegion(const TiffPicture& picture, const Region& stored, uint32_t* out);

 private:
  struct Source;

  TiffFile(std::unique_ptr<Source> source, std::function<absl::Status()> wanted);
  absl::Status IsWanted() const { return wanted_ ? wanted_() : absl::OkStatus(); }
  // INVALID_ARGUMENT if the strip or tile is a JPEG that is not sequential, or the strip one that is taller
  // than it.
  absl::Status CheckJpegOfStrip(uint32_t strip) const;
  absl::Status CheckJpegOfTile(uint32_t tile) const;
  // The frame of a strip's or tile's JPEG; null if there is none.
  std::optional<JpegFrame> FrameOf(uint32_t strile) const;
  // INVALID_ARGUMENT if the tile at this place has far more bytes than pixels.
  absl::Status CheckBytesOfTile(const Region& tile) const;
  absl::Status ReadStrips(const TiffPage& page, float* out);
  absl::Status ReadTiles(const TiffPage& page, float* out);
  absl::Status Damaged() const;

  const std::unique_ptr<Source> source_;
  const std::function<absl::Status()> wanted_;
  // By CountStoredBytes().
  uint64_t stored_bytes_ = 0;
};

}  // namespace saccade::server
