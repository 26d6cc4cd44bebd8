#include <cstddef>
#include <cstdio>
// libjpeg's header needs FILE.
#include <jpeglib.h>

#include <jerror.h>

#include <cstdint>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/pictures/coded_picture.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/upright.h"

namespace saccade::server {
namespace {

[[noreturn]] void OnJpegError(j_common_ptr info) {
  if (info->err->msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
  char text[JMSG_LENGTH_MAX] = "";
  info->err->format_message(info, text);
  throw DecodingEnded{absl::InvalidArgumentError(absl::StrCat("the JPEG picture is damaged: ", text))};
}

// By default libjpeg writes warnings to stderr.
void OnJpegWarning(j_common_ptr /*info*/, int /*level*/) {}
void OnJpegMessage(j_common_ptr /*info*/) {}

// Called for every row of blocks of every scan, and for every row of pixels.
struct JpegProgress : jpeg_progress_mgr {
  explicit JpegProgress(const StillWanted& is_wanted) : jpeg_progress_mgr(), wanted(is_wanted) {
    progress_monitor = [](j_common_ptr info) { static_cast<JpegProgress*>(info->progress)->Check(); };
  }
  void Check() const {
    if (!wanted) return;
    if (absl::Status goes_on = wanted(); !goes_on.ok()) throw DecodingEnded{goes_on};
  }
  const StillWanted& wanted;
};

// CMYK as Adobe stores it, inverted; `row` has four bytes for each pixel.
void FromCmyk(const uint8_t* row, int width, uint8_t* bgr) {
  for (int x = 0; x < width; ++x, row += 4, bgr += 3) {
    const int black = row[3];
    for (int c = 0; c < 3; ++c) bgr[2 - c] = static_cast<uint8_t>(black - ((255 - row[c]) * black >> 8));
  }
}

class JpegReader {
 public:
  explicit JpegReader(const StillWanted& wanted) : progress_(wanted) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = OnJpegError;
    errors_.emit_message = OnJpegWarning;
    errors_.output_message = OnJpegMessage;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info_); }

  cv::Mat Read(std::string_view bytes, int orientation, int reduction) {
    jpeg_mem_src(&info_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    jpeg_read_header(&info_, TRUE);
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(reduction);
    const bool is_cmyk = info_.num_components == 4;
    info_.out_color_space = is_cmyk ? JCS_CMYK : JCS_EXT_BGR;
    jpeg_start_decompress(&info_);
    const auto width = static_cast<int>(info_.output_width);
    cv::Mat picture(static_cast<int>(info_.output_height), width, CV_8UC3);
    cv::Mat row(1, is_cmyk ? width : 0, CV_8UC4);
    for (int y = 0; y < picture.rows; ++y) {
      uint8_t* const bgr = picture.ptr(y);
      JSAMPROW to = is_cmyk ? row.ptr() : bgr;
      jpeg_read_scanlines(&info_, &to, 1);
      if (is_cmyk) FromCmyk(row.ptr(), width, bgr);
    }
    TurnUpright(picture, orientation);
    return picture;
  }

 private:
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  JpegProgress progress_;
};

}  // namespace

absl::StatusOr<cv::Mat> DecodeJpeg(std::string_view bytes, const PictureHeader& header, int reduction,
                                   const StillWanted& wanted) {
  try {
    return JpegReader(wanted).Read(bytes, header.orientation, reduction);
  } catch (const DecodingEnded& ended) {
    return ended.status;
  }
}

}  // namespace saccade::server
