#include "server/pictures/png.h"

#include <png.h>
#include <zlib.h>

#include <cstdlib>
#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "server/core/retry_hint.h"
#include "server/pictures/wanted_rows.h"

namespace saccade::server {
namespace {

// Thrown by the function that libpng calls for an error.
struct PngFailure {
  std::string text;
};

[[noreturn]] void OnFailure(png_structp /*png*/, png_const_charp text) { throw PngFailure{text}; }
void IgnoreWarning(png_structp /*png*/, png_const_charp /*text*/) {}

// Nothing is thrown here: zlib calls it, and frees what it has if one of several pieces is missing. libpng
// then calls OnFailure().
png_voidp Allocate(png_structp png, png_alloc_size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) *static_cast<bool*>(png_get_mem_ptr(png)) = true;
  return memory;
}
void Free(png_structp /*png*/, png_voidp memory) { std::free(memory); }

struct Pixels {
  const uint8_t* data;
  size_t row_bytes;
  int64_t width;
  int64_t height;
  int depth;
  int colour;
};

class PngWriter {
 public:
  // `is_memory_short` becomes true if an allocation fails; it must outlive the writer.
  explicit PngWriter(bool* is_memory_short)
      : png_(png_create_write_struct_2(PNG_LIBPNG_VER_STRING, nullptr, OnFailure, IgnoreWarning,
                                       is_memory_short, Allocate, Free)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {}
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }

  absl::StatusOr<std::string> Write(const Pixels& pixels, const StillWanted& wanted) {
    if (info_ == nullptr) throw std::bad_alloc();
    png_set_write_fn(png_, &bytes_, Append, nullptr);
    png_set_IHDR(png_, info_, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height),
                 pixels.depth, pixels.colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    // Masks, labels and drawings have long runs of one value, which this finds fastest.
    png_set_filter(png_, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    png_set_compression_level(png_, Z_BEST_SPEED);
    png_set_compression_strategy(png_, Z_RLE);
    png_write_info(png_, info_);
    if (pixels.depth == 16) png_set_swap(png_);
    if (pixels.colour == PNG_COLOR_TYPE_RGB) png_set_bgr(png_);
    absl::Status written = ForWantedRows(pixels.height, pixels.width, wanted, [&](int64_t y) {
      png_write_row(png_, pixels.data + static_cast<size_t>(y) * pixels.row_bytes);
    });
    if (!written.ok()) return written;
    png_write_end(png_, nullptr);
    return std::move(bytes_);
  }

 private:
  static void Append(png_structp png, png_bytep data, size_t size) {
    static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
  }

  std::string bytes_;
  png_structp png_;
  png_infop info_;
};

absl::StatusOr<std::string> Png(const Pixels& pixels, const StillWanted& wanted) {
  const std::string size = absl::StrCat(pixels.width, " x ", pixels.height, " pixels");
  const auto failed = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat(size, " could not be encoded as PNG: ", why));
  };
  const auto out_of_memory = [&] {
    return OutOfMemory(absl::StrCat("out of memory while encoding ", size,
                                    " as PNG; try again later or send a smaller picture"));
  };
  bool is_memory_short = false;
  try {
    return PngWriter(&is_memory_short).Write(pixels, wanted);
  } catch (const PngFailure& failure) {
    return is_memory_short ? out_of_memory() : failed(failure.text);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}

}  // namespace

absl::StatusOr<std::string> GreyPng(const uint8_t* pixels, int64_t height, int64_t width,
                                    const StillWanted& wanted) {
  return Png({pixels, static_cast<size_t>(width), width, height, 8, PNG_COLOR_TYPE_GRAY}, wanted);
}

absl::StatusOr<std::string> GreyPng(const uint16_t* pixels, int64_t height, int64_t width,
                                    const StillWanted& wanted) {
  return Png({reinterpret_cast<const uint8_t*>(pixels), 2 * static_cast<size_t>(width), width, height, 16,
              PNG_COLOR_TYPE_GRAY},
             wanted);
}

absl::StatusOr<std::string> PngOf(const cv::Mat& pixels) {
  if (pixels.type() != CV_8UC3 && pixels.type() != CV_8UC1)
    return absl::InternalError("the pixels for a PNG are neither 8-bit BGR nor 8-bit grey");
  return Png({pixels.data, pixels.step, pixels.cols, pixels.rows, 8,
              pixels.channels() == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY},
             nullptr);
}

}  // namespace saccade::server
