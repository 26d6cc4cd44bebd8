#include "server/pictures/tiff_file.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/pictures/tiff_directory.h"
#include "server/pictures/voxels.h"

namespace saccade::server {
namespace {

// libtiff allocates what a file claims. This bounds a single allocation, e.g. for a strip or a tile.
constexpr int64_t kMaxAllocation = int64_t{256} << 20;

// Samples of one pixel. Those beyond colour and transparency are decoded, but not used.
constexpr int kMaxSamples = 8;

// A whole tile is decoded even if the picture shows little of it. A tile may have this many pixels, or
// kMaxTileShare times as many as its picture.
constexpr int64_t kMaxTilePixels = int64_t{1} << 20;
constexpr int64_t kMaxTileShare = 4;
// The positions of all tiles are read for each region.
constexpr uint32_t kMaxTilesOfFile = 1 << 20;

// Pixels that are decoded before it is asked whether they are still wanted; a strip may have more.
constexpr int64_t kPixelsAtOnce = int64_t{1} << 18;

// How many times as large as the file its strips or tiles may be together. Some programs write the size
// before compression as that of each strip.
constexpr uint64_t kMaxSharing = 4;

// Tiles of a picture that is read by regions may share their bytes, as those of an empty background do. Each
// may have this many bytes, and twice those of its pixels: a decoder could search more for pixels for long.
constexpr uint64_t kMaxExcessOfTile = 4096;

// libtiff decodes all of a JPEG in the last strip, also what is below the picture. Rows that fill up a block
// may be there.
constexpr int64_t kMaxExcessOfStrip = 16;

absl::Status BrokenTiff(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("the TIFF cannot be read: ", why));
}

// TIFF's JPEGs are sequential. Others have up to a hundred scans, each of which costs as much.
absl::Status CheckSequential(const JpegFrame& frame, uint32_t strile) {
  if (frame.is_sequential) return absl::OkStatus();
  return BrokenTiff(absl::StrCat("the JPEG of its strip or tile ", strile,
                                 " is not baseline; save it again with another compression"));
}

// The compressions whose decoders take no more memory and time than the pixels suggest.
absl::Status CheckCompression(TIFF* tiff) {
  uint16_t compression = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_ZSTD:
      return absl::OkStatus();
    default:
      return BrokenTiff(
          absl::StrCat("its compression is number ", compression,
                       "; accepted are none, CCITT, LZW, JPEG, Deflate, PackBits and Zstandard, so "
                       "save it again with one of these"));
  }
}

absl::Status CheckTile(TIFF* tiff, int64_t page_pixels) {
  if (!TIFFIsTiled(tiff)) return absl::OkStatus();
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
  const int64_t max_pixels = std::max(kMaxTilePixels, kMaxTileShare * page_pixels);
  if (width >= 1 && height >= 1 && int64_t{width} <= max_pixels / height) return absl::OkStatus();
  return BrokenTiff(absl::StrCat("its tiles are ", width, " x ", height, " pixels large; at most ",
                                 max_pixels, " pixels are accepted for a page of ", page_pixels,
                                 ", so save it again with smaller tiles or with strips"));
}

// Rows of whole strips or tiles, of about kPixelsAtOnce pixels.
int64_t RowsAtOnce(TIFF* tiff, const TiffPicture& picture) {
  uint32_t unit = 0;
  TIFFGetFieldDefaulted(tiff, TIFFIsTiled(tiff) ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &unit);
  const int64_t rows = std::clamp<int64_t>(unit, 1, picture.height);
  return rows * std::max<int64_t>(1, kPixelsAtOnce / (rows * picture.width));
}

// The colours of a page, such as "CMYK of 16 bits a channel".
std::string ColoursOf(TIFF* tiff) {
  uint16_t photometric = PHOTOMETRIC_MINISBLACK, bits = 1;
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  const auto named = [&](const std::string& name) {
    return absl::StrCat(name, " of ", bits, " bits a channel");
  };
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      return named("grey");
    case PHOTOMETRIC_RGB:
      return named("RGB");
    case PHOTOMETRIC_PALETTE:
      return named("palette");
    case PHOTOMETRIC_SEPARATED:
      return named("CMYK");
    case PHOTOMETRIC_YCBCR:
      return named("YCbCr");
    case PHOTOMETRIC_CIELAB:
      return named("CIELab");
    default:
      return named(absl::StrCat("photometric interpretation ", photometric));
  }
}

absl::StatusOr<VoxelType> TypeOf(uint16_t bits, uint16_t format) {
  if (format == SAMPLEFORMAT_UINT && bits == 8) return VoxelType::kUint8;
  if (format == SAMPLEFORMAT_UINT && bits == 16) return VoxelType::kUint16;
  if (format == SAMPLEFORMAT_IEEEFP && bits == 32) return VoxelType::kFloat32;
  const char* kind = "unsigned integers";
  if (format == SAMPLEFORMAT_INT) kind = "signed integers";
  if (format == SAMPLEFORMAT_IEEEFP) kind = "floating point";
  if (format > SAMPLEFORMAT_IEEEFP) kind = "untyped or complex numbers";
  return BrokenTiff(absl::StrCat("its samples are ", kind, " of ", bits,
                                 " bits; accepted are unsigned integers of 8 or 16 bits and float32"));
}

// Copies the pixels that both rectangles have from one to the other.
void CopyShared(const uint32_t* pixels, const Region& from, const Region& to, uint32_t* out) {
  const int left = std::max(from.x, to.x);
  const int columns = std::min(from.x + from.width, to.x + to.width) - left;
  const int bottom = std::min(from.y + from.height, to.y + to.height);
  for (int y = std::max(from.y, to.y); y < bottom; ++y) {
    std::copy_n(pixels + int64_t{y - from.y} * from.width + (left - from.x), columns,
                out + int64_t{y - to.y} * to.width + (left - to.x));
  }
}

// Every tile that a region touches is decoded as a whole.
absl::Status CheckTouchedTiles(std::pair<int64_t, int64_t> tile, const Region& stored) {
  const auto touched = [](int64_t first, int64_t size, int64_t of) {
    return (first + size - 1) / of - first / of + 1;
  };
  const auto [width, height] = tile;
  const int64_t decoded =
      touched(stored.x, stored.width, width) * touched(stored.y, stored.height, height) * width * height;
  // A few large tiles, or tiles of a few times the region's own pixels.
  if (decoded <= 4 * kMaxTilePixels + 4 * int64_t{stored.width} * stored.height) return absl::OkStatus();
  return BrokenTiff(absl::StrCat("its own tiles of ", width, " x ", height,
                                 " pixels are too long for a region of ", stored.width, " x ", stored.height,
                                 "; save it again in tiles of 256 x 256"));
}

}  // namespace

struct TiffFile::Source {
  std::string_view bytes;
  size_t at = 0;
  TIFF* tiff = nullptr;
  // The first error message of libtiff since this was last cleared.
  std::string error;

  ~Source() {
    if (tiff != nullptr) TIFFClose(tiff);
  }

  static Source* From(thandle_t handle) { return static_cast<Source*>(handle); }

  static tmsize_t Read(thandle_t handle, void* to, tmsize_t count) {
    Source* const self = From(handle);
    if (self->at >= self->bytes.size() || count < 0) return 0;
    const size_t taken = std::min(static_cast<size_t>(count), self->bytes.size() - self->at);
    std::memcpy(to, self->bytes.data() + self->at, taken);
    self->at += taken;
    return static_cast<tmsize_t>(taken);
  }

  static tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }

  static toff_t Seek(thandle_t handle, toff_t offset, int whence) {
    Source* const self = From(handle);
    if (whence == SEEK_CUR) offset += self->at;
    if (whence == SEEK_END) offset += self->bytes.size();
    self->at = static_cast<size_t>(offset);
    return offset;
  }

  static int Close(thandle_t) { return 0; }
  static toff_t Size(thandle_t handle) { return From(handle)->bytes.size(); }

  // Lets libtiff read the file directly from memory. libtiff does not write to mapped files.
  static int Map(thandle_t handle, void** base, toff_t* size) {
    *base = const_cast<char*>(From(handle)->bytes.data());
    *size = From(handle)->bytes.size();
    return 1;
  }
  static void Unmap(thandle_t, void*, toff_t) {}

  static int OnError(TIFF*, void* data, const char* module, const char* format, va_list arguments) {
    auto* const self = static_cast<Source*>(data);
    if (!self->error.empty()) return 1;
    char text[256];
    std::vsnprintf(text, sizeof(text), format, arguments);
    // Keep libtiff's message, but without "memory", the file name that Open() passes.
    const bool named = module != nullptr && *module != '\0' && std::strcmp(module, "memory") != 0;
    self->error = named ? absl::StrCat(module, ": ", text) : text;
    return 1;
  }
  static int OnWarning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

  // Prepares to convert the current page to RGBA. TIFFRGBAImageEnd() frees what that takes. INVALID_ARGUMENT,
  // naming the page's colours, if libtiff does not convert them.
  absl::Status BeginRgba(TIFFRGBAImage& image) {
    error.clear();
    char why[1024] = "";
    if (TIFFRGBAImageOK(tiff, why) != 1)
      return BrokenTiff(absl::StrCat("its pixels cannot be converted to RGB (", why, ")"));
    if (TIFFRGBAImageBegin(&image, tiff, /*stop=*/1, why) == 1) return absl::OkStatus();
    // libtiff's reason does not name the colours.
    const std::string reason = error.empty() ? why : error;
    return BrokenTiff(absl::StrCat("its pixels cannot be converted to RGB (", ColoursOf(tiff),
                                   reason.empty() ? "" : ": ", reason,
                                   "); save it again as grey or RGB of 8 bits a channel"));
  }
};

TiffFile::TiffFile(std::unique_ptr<Source> source, std::function<absl::Status()> wanted)
    : source_(std::move(source)), wanted_(std::move(wanted)) {}

TiffFile::~TiffFile() = default;

absl::StatusOr<std::unique_ptr<TiffFile>> TiffFile::Open(std::string_view bytes, int64_t max_pages,
                                                         std::function<absl::Status()> wanted) {
  if (absl::Status tags = CheckTiffTags(bytes, max_pages); !tags.ok()) return tags;
  auto source = std::make_unique<Source>();
  source->bytes = bytes;
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return OutOfMemory("out of memory while reading a TIFF; try again later");
  TIFFOpenOptionsSetErrorHandlerExtR(options, Source::OnError, source.get());
  TIFFOpenOptionsSetWarningHandlerExtR(options, Source::OnWarning, source.get());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(kMaxAllocation));
  source->tiff = TIFFClientOpenExt("memory", "r", source.get(), Source::Read, Source::Write, Source::Seek,
                                   Source::Close, Source::Size, Source::Map, Source::Unmap, options);
  TIFFOpenOptionsFree(options);
  if (source->tiff == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("not a readable TIFF (",
                                                   source->error.empty() ? "no reason given" : source->error,
                                                   "), ", bytes.size(), " bytes long"));
  }
  return std::unique_ptr<TiffFile>(new TiffFile(std::move(source), std::move(wanted)));
}

absl::Status TiffFile::Damaged() const {
  return BrokenTiff(source_->error.empty() ? "it is damaged" : source_->error);
}

absl::StatusOr<TiffPage> TiffFile::Page() {
  TIFF* const tiff = source_->tiff;
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, photometric = PHOTOMETRIC_MINISBLACK;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) != 1 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) != 1 || width < 1 || height < 1) {
    return BrokenTiff("a page gives no width or no height");
  }
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
  if (samples != 1 || photometric != PHOTOMETRIC_MINISBLACK) {
    return BrokenTiff("a page is not greyscale; expected one sample per pixel, with black at 0");
  }
  auto type = TypeOf(bits, format);
  if (!type.ok()) return type.status();
  if (absl::Status known = CheckCompression(tiff); !known.ok()) return known;
  if (absl::Status tile = CheckTile(tiff, int64_t{width} * height); !tile.ok()) return tile;
  return TiffPage{.width = width, .height = height, .type = *type};
}

std::string_view TiffFile::Description() const {
  const char* text = nullptr;
  if (TIFFGetField(source_->tiff, TIFFTAG_IMAGEDESCRIPTION, &text) != 1 || text == nullptr) return {};
  return text;
}

absl::StatusOr<TiffPicture> TiffFile::Picture() {
  TIFF* const tiff = source_->tiff;
  uint32_t width = 0, height = 0;
  uint16_t orientation = ORIENTATION_TOPLEFT, samples = 1;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) != 1 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) != 1 || width < 1 || height < 1) {
    return BrokenTiff("it gives no width or no height");
  }
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
  if (orientation < ORIENTATION_TOPLEFT || orientation > ORIENTATION_LEFTBOT)
    orientation = ORIENTATION_TOPLEFT;
  if (absl::Status known = CheckCompression(tiff); !known.ok()) return known;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  if (samples > kMaxSamples) {
    return BrokenTiff(absl::StrCat("it has ", samples, " samples for each pixel; at most ", kMaxSamples,
                                   " are accepted, so save it as grey or colour"));
  }
  if (absl::Status tile = CheckTile(tiff, int64_t{width} * height); !tile.ok()) return tile;
  TIFFRGBAImage image;
  if (absl::Status known = source_->BeginRgba(image); !known.ok()) return known;
  TIFFRGBAImageEnd(&image);
  return TiffPicture{.width = width, .height = height, .orientation = orientation};
}

int64_t TiffFile::StoredPixels() const {
  TIFF* const tiff = source_->tiff;
  uint32_t width = 0, height = 0;
  if (TIFFIsTiled(tiff)) {
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
    return int64_t{width} * height * TIFFNumberOfTiles(tiff);
  }
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  return int64_t{width} * height;
}

std::optional<JpegFrame> TiffFile::FrameOf(uint32_t strile) const {
  TIFF* const tiff = source_->tiff;
  const uint64_t offset = TIFFGetStrileOffset(tiff, strile);
  if (offset >= source_->bytes.size()) return std::nullopt;
  return JpegFrameOf(source_->bytes.substr(offset, TIFFGetStrileByteCount(tiff, strile)));
}

absl::Status TiffFile::CheckJpegOfTile(uint32_t tile) const {
  const auto frame = FrameOf(tile);
  return frame ? CheckSequential(*frame, tile) : absl::OkStatus();
}

absl::Status TiffFile::CheckJpegOfStrip(uint32_t strip) const {
  TIFF* const tiff = source_->tiff;
  const auto frame = FrameOf(strip);
  uint32_t height = 0, rows = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows);
  const int64_t most = std::min(rows, height) + kMaxExcessOfStrip;
  if (!frame) return absl::OkStatus();
  if (frame->height <= most) return CheckSequential(*frame, strip);
  return BrokenTiff(absl::StrCat("the JPEG of its strip ", strip, " has ", frame->height, " rows; at most ",
                                 most, " are expected, so save it again"));
}

absl::Status TiffFile::CountStoredBytes() {
  TIFF* const tiff = source_->tiff;
  uint16_t compression = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  // Without compression, the pixels bound what is read.
  if (compression == COMPRESSION_NONE) return absl::OkStatus();
  const uint64_t size = source_->bytes.size();
  const bool is_tiled = TIFFIsTiled(tiff) != 0;
  const uint32_t count = is_tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  for (uint32_t strile = 0; strile < count; ++strile) {
    const uint64_t offset = std::min<uint64_t>(size, TIFFGetStrileOffset(tiff, strile));
    stored_bytes_ += std::min<uint64_t>(size - offset, TIFFGetStrileByteCount(tiff, strile));
    if (stored_bytes_ > kMaxSharing * size) {
      return BrokenTiff(absl::StrCat("its first strips or tiles have ", stored_bytes_,
                                     " bytes together, but the file only ", size,
                                     "; they must not share their data, so save it again"));
    }
    if (compression != COMPRESSION_JPEG) continue;
    if (absl::Status fits = is_tiled ? CheckJpegOfTile(strile) : CheckJpegOfStrip(strile); !fits.ok())
      return fits;
  }
  return absl::OkStatus();
}

absl::Status TiffFile::ReadPicture(const TiffPicture& picture, uint32_t* out) {
  TIFF* const tiff = source_->tiff;
  TIFFRGBAImage image;
  if (absl::Status known = source_->BeginRgba(image); !known.ok()) return known;
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> end(&image, TIFFRGBAImageEnd);
  image.req_orientation = static_cast<uint16_t>(picture.orientation);
  const int64_t rows = RowsAtOnce(tiff, picture);
  for (int64_t row = 0; row < picture.height; row += rows) {
    if (absl::Status goes_on = IsWanted(); !goes_on.ok()) return goes_on;
    image.row_offset = static_cast<int>(row);
    const auto here = static_cast<uint32_t>(std::min(rows, picture.height - row));
    const auto width = static_cast<uint32_t>(picture.width);
    if (TIFFRGBAImageGet(&image, out + row * picture.width, width, here) != 1) return Damaged();
  }
  return absl::OkStatus();
}

absl::Status TiffFile::CheckRegions() const {
  TIFF* const tiff = source_->tiff;
  constexpr char kAdvice[] = "save it again in tiles of 256 x 256, for example";
  if (!TIFFIsTiled(tiff)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a TIFF in strips cannot be read by regions, so ", kAdvice));
  }
  if (TIFFNumberOfTiles(tiff) > kMaxTilesOfFile) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has more than ", kMaxTilesOfFile, " tiles of its own, so ", kAdvice));
  }
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
  if (width >= 1 && height >= 1 && int64_t{width} <= kMaxTilePixels / height) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("its own tiles of ", width, " x ", height,
                                                 " pixels are too large to be read by regions; at most ",
                                                 kMaxTilePixels, " pixels are accepted, so ", kAdvice));
}

std::pair<int64_t, int64_t> TiffFile::TileSize() const {
  uint32_t width = 0, height = 0;
  TIFFGetField(source_->tiff, TIFFTAG_TILEWIDTH, &width);
  TIFFGetField(source_->tiff, TIFFTAG_TILELENGTH, &height);
  return {width, height};
}

absl::Status TiffFile::CheckBytesOfTile(const Region& tile) const {
  TIFF* const tiff = source_->tiff;
  uint16_t planes = PLANARCONFIG_CONTIG, samples = 1, compression = COMPRESSION_NONE;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  const uint64_t most = 2 * TIFFTileSize64(tiff) + kMaxExcessOfTile;
  const uint16_t count = planes == PLANARCONFIG_SEPARATE ? samples : uint16_t{1};
  for (uint16_t plane = 0; plane < count; ++plane) {
    const uint32_t number =
        TIFFComputeTile(tiff, static_cast<uint32_t>(tile.x), static_cast<uint32_t>(tile.y), 0, plane);
    if (const uint64_t stored = TIFFGetStrileByteCount(tiff, number); stored > most) {
      return BrokenTiff(absl::StrCat("its tile ", number, " has ", stored, " bytes; at most ", most,
                                     " are expected for its pixels"));
    }
    if (compression != COMPRESSION_JPEG) continue;
    if (absl::Status fits = CheckJpegOfTile(number); !fits.ok()) return fits;
  }
  return absl::OkStatus();
}

absl::Status TiffFile::ReadRegion(const TiffPicture& picture, const Region& stored, uint32_t* out) {
  const auto [width, height] = TileSize();
  if (absl::Status near = CheckTouchedTiles({width, height}, stored); !near.ok()) return near;
  std::vector<uint32_t> tile(static_cast<size_t>(width * height));
  TIFFRGBAImage image;
  if (absl::Status known = source_->BeginRgba(image); !known.ok()) return known;
  // The pixels stay as they are stored.
  image.req_orientation = image.orientation;
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> end(&image, TIFFRGBAImageEnd);
  // libtiff reads one tile at a time: it misplaces parts of tiles whose colours are stored apart.
  for (int64_t y = stored.y / height * height; y < int64_t{stored.y} + stored.height; y += height) {
    for (int64_t x = stored.x / width * width; x < int64_t{stored.x} + stored.width; x += width) {
      // What the tile shows of the picture.
      const Region shown = {.x = static_cast<int>(x),
                            .y = static_cast<int>(y),
                            .width = static_cast<int>(std::min<int64_t>(width, picture.width - x)),
                            .height = static_cast<int>(std::min<int64_t>(height, picture.height - y))};
      if (absl::Status goes_on = IsWanted(); !goes_on.ok()) return goes_on;
      if (absl::Status bytes = CheckBytesOfTile(shown); !bytes.ok()) return bytes;
      image.col_offset = shown.x;
      image.row_offset = shown.y;
      const int read = TIFFRGBAImageGet(&image, tile.data(), static_cast<uint32_t>(shown.width),
                                        static_cast<uint32_t>(shown.height));
      if (read != 1) return Damaged();
      CopyShared(tile.data(), shown, stored, out);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TiffFile::Next() {
  source_->error.clear();
  if (TIFFReadDirectory(source_->tiff) == 1) return true;
  if (!source_->error.empty()) return Damaged();
  return false;
}

absl::Status TiffFile::Read(const TiffPage& page, float* out) {
  source_->error.clear();
  try {
    return TIFFIsTiled(source_->tiff) ? ReadTiles(page, out) : ReadStrips(page, out);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("out of memory while decoding a TIFF; try again later");
  }
}

absl::Status TiffFile::ReadStrips(const TiffPage& page, float* out) {
  TIFF* const tiff = source_->tiff;
  uint32_t rows_a_strip = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows_a_strip);
  const int64_t rows = std::clamp<int64_t>(rows_a_strip, 1, page.height);
  const size_t row_bytes = static_cast<size_t>(page.width) * BytesOf(page.type);
  if (static_cast<int64_t>(row_bytes) > kMaxAllocation / rows)
    return BrokenTiff("one of its strips is too large");
  std::vector<char> strip(row_bytes * rows);
  for (int64_t row = 0; row < page.height; row += rows) {
    if (absl::Status goes_on = IsWanted(); !goes_on.ok()) return goes_on;
    const int64_t here = std::min(rows, page.height - row);
    const auto wanted = static_cast<tmsize_t>(row_bytes * here);
    const uint32_t index = TIFFComputeStrip(tiff, static_cast<uint32_t>(row), 0);
    if (TIFFReadEncodedStrip(tiff, index, strip.data(), wanted) != wanted) return Damaged();
    ToFloats(page.type, {strip.data(), row_bytes * here}, out + row * page.width);
  }
  return absl::OkStatus();
}

absl::Status TiffFile::ReadTiles(const TiffPage& page, float* out) {
  TIFF* const tiff = source_->tiff;
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &height);
  const size_t bytes = BytesOf(page.type);
  const tmsize_t size = TIFFTileSize(tiff);
  if (width < 1 || height < 1 || size < 1 || size > kMaxAllocation ||
      static_cast<size_t>(size) != size_t{width} * height * bytes) {
    return BrokenTiff("the size of its tiles is invalid");
  }
  std::vector<char> tile(static_cast<size_t>(size));
  for (int64_t y = 0; y < page.height; y += height) {
    if (absl::Status goes_on = IsWanted(); !goes_on.ok()) return goes_on;
    for (int64_t x = 0; x < page.width; x += width) {
      if (TIFFReadTile(tiff, tile.data(), static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0, 0) < 0)
        return Damaged();
      const auto columns = static_cast<size_t>(std::min<int64_t>(width, page.width - x));
      const int64_t rows = std::min<int64_t>(height, page.height - y);
      for (int64_t row = 0; row < rows; ++row) {
        ToFloats(page.type, {tile.data() + static_cast<size_t>(row) * width * bytes, columns * bytes},
                 out + (y + row) * page.width + x);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
