#include <png.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/opencv.h"
#include "server/pictures/picture_bytes.h"
#include "server/pictures/upright.h"

namespace saccade::server {
namespace {

constexpr std::string_view kPngStart = "\x89PNG\r\n\x1A\n";
constexpr size_t kPngSignature = kPngStart.size();
// Bytes of a chunk in addition to its data, and those before its data.
constexpr size_t kPngChunkFrame = 12;
constexpr size_t kPngChunkHead = 8;

// Compressed bytes that libpng gets at once. They may become a thousand times as many.
constexpr size_t kPngPiece = 4096;

[[noreturn]] void OnPngError(png_structp /*png*/, png_const_charp text) {
  throw DecodingEnded{absl::InvalidArgumentError(absl::StrCat("the PNG picture is damaged: ", text))};
}
// By default libpng writes warnings to stderr.
void OnPngWarning(png_structp /*png*/, png_const_charp /*text*/) {}

png_voidp PngAllocate(png_structp /*png*/, png_alloc_size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void PngFree(png_structp /*png*/, png_voidp memory) { std::free(memory); }

// By the first EXIF data of the file.
int PngOrientation(std::string_view png) {
  const PictureBytes bytes(png);
  for (size_t at = kPngSignature; bytes.has(at, kPngChunkFrame); at += kPngChunkFrame + bytes.big32(at)) {
    if (!bytes.tag(at + 4, "eXIf")) continue;
    const size_t length = bytes.big32(at);
    if (!bytes.has(at + kPngChunkHead, length)) return 1;
    return ExifOrientation(WithoutExifName(bytes.part(at + kPngChunkHead, length)));
  }
  return 1;
}

enum class PngForm { kBgr, kGrey, kNumbers };

class PngReader {
 public:
  PngReader(int64_t width, int64_t height, PngForm form)
      : form_(form),
        size_(static_cast<int>(width), static_cast<int>(height)),
        png_(png_create_read_struct_2(PNG_LIBPNG_VER_STRING, nullptr, OnPngError, OnPngWarning, nullptr,
                                      PngAllocate, PngFree)) {}
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  cv::Mat Read(std::string_view bytes, const StillWanted& wanted) {
    if (png_ == nullptr) throw std::bad_alloc();
    info_ = png_create_info_struct(png_);
    png_set_progressive_read_fn(png_, this, OnInfo, OnRow, nullptr);
    for (size_t at = 0; at < bytes.size() && !is_complete_; at += kPngPiece) {
      if (absl::Status goes_on = wanted ? wanted() : absl::OkStatus(); !goes_on.ok())
        throw DecodingEnded{goes_on};
      const std::string_view piece = bytes.substr(at, kPngPiece);
      // libpng does not write to it, but its interface is not const-correct.
      auto* const data = reinterpret_cast<png_bytep>(const_cast<char*>(piece.data()));
      png_process_data(png_, info_, data, piece.size());
    }
    if (!is_complete_) OnPngError(png_, "some of its rows are missing");
    return picture_;
  }

 private:
  static PngReader* From(png_structp png) { return static_cast<PngReader*>(png_get_progressive_ptr(png)); }

  static void OnInfo(png_structp png, png_infop info) {
    PngReader& self = *From(png);
    if (png_get_image_width(png, info) != static_cast<png_uint_32>(self.size_.width) ||
        png_get_image_height(png, info) != static_cast<png_uint_32>(self.size_.height))
      OnPngError(png, "its header does not fit its pixels");
    const int type = self.Convert(png, info);
    self.passes_ = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    self.picture_ = cv::Mat::zeros(self.size_, type);
    if (png_get_rowbytes(png, info) != self.picture_.elemSize() * static_cast<size_t>(self.size_.width))
      OnPngError(png, "its header does not fit its pixels");
  }

  // Each returns OpenCV's type of the pixels.
  int Convert(png_structp png, png_infop info) const {
    switch (form_) {
      case PngForm::kGrey:
        return ConvertToGrey(png, info);
      case PngForm::kNumbers:
        return ConvertToNumbers(png, info);
      case PngForm::kBgr:
        break;
    }
    return ConvertToBgr(png, info);
  }
  static int ConvertToNumbers(png_structp png, png_infop info) {
    const unsigned colour = png_get_color_type(png, info);
    if (colour != PNG_COLOR_TYPE_GRAY && colour != PNG_COLOR_TYPE_PALETTE)
      OnPngError(png, "it is neither grey nor has it a palette");
    const unsigned depth = png_get_bit_depth(png, info);
    // A byte for each value.
    if (depth < 8) png_set_packing(png);
    if (depth == 16) png_set_swap(png);
    return depth == 16 ? CV_16UC1 : CV_8UC1;
  }
  static int ConvertToGrey(png_structp png, png_infop info) {
    if (png_get_color_type(png, info) != PNG_COLOR_TYPE_GRAY) OnPngError(png, "it is not grey");
    const unsigned depth = png_get_bit_depth(png, info);
    if (depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    // Stored with the higher byte first.
    if (depth == 16) png_set_swap(png);
    return depth == 16 ? CV_16UC1 : CV_8UC1;
  }
  static int ConvertToBgr(png_structp png, png_infop info) {
    const unsigned depth = png_get_bit_depth(png, info);
    const unsigned colour = png_get_color_type(png, info);
    if (depth == 16) png_set_strip_16(png);
    png_set_strip_alpha(png);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    const bool is_grey = (colour & PNG_COLOR_MASK_COLOR) == 0;
    if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (is_grey) {
      png_set_gray_to_rgb(png);
    } else {
      png_set_bgr(png);
    }
    return CV_8UC3;
  }

  // `row` is null if it does not belong to the pass.
  static void OnRow(png_structp png, png_bytep row, png_uint_32 number, int pass) {
    PngReader& self = *From(png);
    png_progressive_combine_row(png, self.picture_.ptr(static_cast<int>(number)), row);
    self.is_complete_ =
        pass + 1 == self.passes_ && number + 1 == static_cast<png_uint_32>(self.picture_.rows);
  }

  const PngForm form_;
  const cv::Size size_;
  // Made when the header has been read.
  cv::Mat picture_;
  png_structp png_;
  png_infop info_ = nullptr;
  int passes_ = 1;
  bool is_complete_ = false;
};

absl::StatusOr<cv::Mat> ReadOneChannel(std::string_view bytes, int64_t width, int64_t height, PngForm form) {
  return CatchExceptions("the PNG picture", [&]() -> absl::StatusOr<cv::Mat> {
    if (!PictureBytes(bytes).tag(0, kPngStart)) return absl::InvalidArgumentError("it is no PNG picture");
    try {
      return PngReader(width, height, form).Read(bytes, nullptr);
    } catch (const DecodingEnded& ended) {
      return ended.status;
    }
  });
}

}  // namespace

absl::StatusOr<cv::Mat> DecodePng(std::string_view bytes, const PictureHeader& header,
                                  const StillWanted& wanted) {
  try {
    cv::Mat picture = PngReader(header.width, header.height, PngForm::kBgr).Read(bytes, wanted);
    TurnUpright(picture, PngOrientation(bytes));
    return picture;
  } catch (const DecodingEnded& ended) {
    return ended.status;
  }
}

absl::StatusOr<cv::Mat> ReadGreyPng(std::string_view bytes, int64_t width, int64_t height) {
  return ReadOneChannel(bytes, width, height, PngForm::kGrey);
}

absl::StatusOr<cv::Mat> ReadPngNumbers(std::string_view bytes, int64_t width, int64_t height) {
  return ReadOneChannel(bytes, width, height, PngForm::kNumbers);
}

}  // namespace saccade::server
