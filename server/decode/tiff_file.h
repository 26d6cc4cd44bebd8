// A TIFF in memory, read with libtiff: page by page as planes of voxels, or its first page as a picture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/request.h"

namespace saccade::server {

struct TiffPage {
  int64_t width = 0;
  int64_t height = 0;
  VoxelType type = VoxelType::kUint8;

  friend bool operator==(const TiffPage&, const TiffPage&) = default;
};

// As stored: the orientation, 1 to 8 as EXIF has it, may swap its sides.
struct TiffPicture {
  int64_t width = 0;
  int64_t height = 0;
  int orientation = 1;
};

// Not thread-safe; several may be read at once.
class TiffFile {
 public:
  // `bytes` must outlive it. INVALID_ARGUMENT if they are no TIFF.
  static absl::StatusOr<std::unique_ptr<TiffFile>> Open(std::string_view bytes);
  ~TiffFile();
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  // Of the page it stands at, the first one at the beginning. INVALID_ARGUMENT if it is not grey, or not of a
  // type of ours.
  absl::StatusOr<TiffPage> Page();
  // Goes to the next page; false if there is none.
  absl::StatusOr<bool> Next();
  // The page's pixels as floats, row by row. `out` has room for all of `page`, which is Page()'s. Decodes one
  // strip or tile at a time. INVALID_ARGUMENT if the page is damaged.
  absl::Status Read(const TiffPage& page, float* out);

  // What the page it stands at is as a picture, whatever its colours: grey, palette, RGB, CMYK, YCbCr, of 1
  // to 16 bits. INVALID_ARGUMENT, with libtiff's reason, if it is none.
  absl::StatusOr<TiffPicture> Picture();
  // Its pixels as stored, each in 4 bytes, red, green, blue and opacity; `out` has room for all.
  // INVALID_ARGUMENT if the page is damaged.
  absl::Status ReadPicture(const TiffPicture& picture, uint32_t* out);

 private:
  struct Source;

  explicit TiffFile(std::unique_ptr<Source> source);
  absl::Status ReadStrips(const TiffPage& page, float* out);
  absl::Status ReadTiles(const TiffPage& page, float* out);
  absl::Status Damaged() const;

  const std::unique_ptr<Source> source_;
};

}  // namespace saccade::server
