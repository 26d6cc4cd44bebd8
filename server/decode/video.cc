#include "server/decode/video.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <new>
#include <opencv2/core.hpp>
#include <opencv2/videoio.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/decode/opencv.h"
#include "server/decode/picture_bytes.h"

namespace saccade::server {
namespace {

constexpr double kMaxRate = 1000;

// FFmpeg detects the format from the file's content and supports formats that make it open other files (DASH,
// HLS). OpenCV accepts the option that restricts formats only through the environment, which is set at static
// initialization, before any thread starts.
const bool kOnlyOurFormats =
    setenv("OPENCV_FFMPEG_CAPTURE_OPTIONS",
           "protocol_whitelist;file|format_whitelist;mov,mp4,matroska,webm,avi", 1) == 0;

// A file in memory, readable through its path while this object exists.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("video", MFD_CLOEXEC)) {
    while (descriptor_ >= 0 && !bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written <= 0) {
        Close();
        return;
      }
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  ~MemoryFile() { Close(); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  bool ok() const { return descriptor_ >= 0; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

 private:
  void Close() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }

  int descriptor_;
};

absl::Status Undecodable(std::string_view bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("the video of ", bytes.size(),
                   " bytes cannot be decoded: it is damaged, truncated, or uses "
                   "an unknown codec; try H.264 in MP4"));
}

class OpenCvVideo final : public Video {
 public:
  explicit OpenCvVideo(std::string_view bytes) : file_(bytes) {}

  absl::Status Start(std::string_view bytes, const DecodeLimits& limits) {
    if (!file_.ok()) return absl::ResourceExhaustedError("out of memory for the video; try again later");
    if (!capture_.open(file_.path(), cv::CAP_FFMPEG)) return Undecodable(bytes);
    rate_ = capture_.get(cv::CAP_PROP_FPS);
    size_ = {std::lround(capture_.get(cv::CAP_PROP_FRAME_HEIGHT)),
             std::lround(capture_.get(cv::CAP_PROP_FRAME_WIDTH))};
    // The negation also rejects NaN.
    if (!(rate_ > 0 && rate_ <= kMaxRate) || size_.height < 1 || size_.width < 1) return Undecodable(bytes);
    if (absl::Status fits = CheckPixels(size_.width, size_.height, limits); !fits.ok()) return fits;
    return absl::OkStatus();
  }

  double frames_per_second() const override { return rate_; }
  int64_t claimed_frames() const override {
    const double claimed = capture_.get(cv::CAP_PROP_FRAME_COUNT);
    return claimed > 0 && claimed < 1e9 ? std::lround(claimed) : 0;
  }
  models::Size size() const override { return size_; }

  bool Skip() override {
    try {
      return capture_.grab();
    } catch (const std::exception&) {
      // Frames that cannot be read end the video.
      return false;
    }
  }

  absl::StatusOr<DecodedPicture> Last() override {
    return CatchExceptions("a frame of the video", [&]() -> absl::StatusOr<DecodedPicture> {
      cv::Mat frame;
      if (!capture_.retrieve(frame) || frame.empty() || frame.type() != CV_8UC3)
        return absl::InvalidArgumentError("a frame of the video cannot be decoded");
      if (frame.rows != size_.height || frame.cols != size_.width)
        return absl::InvalidArgumentError("the frames of the video have different sizes; expected one size");
      DecodedPicture picture;
      picture.sent = size_;
      const auto kept = std::make_shared<const cv::Mat>(frame);
      picture.pixels = {
          .data = kept->data, .row_bytes = kept->step, .width = kept->cols, .height = kept->rows};
      picture.owner = kept;
      return picture;
    });
  }

 private:
  const MemoryFile file_;
  cv::VideoCapture capture_;
  double rate_ = 0;
  models::Size size_;
};

}  // namespace

bool IsVideo(std::string_view encoded) {
  const PictureBytes bytes(encoded);
  if (bytes.tag(0, "\x1A\x45\xDF\xA3")) return true;
  if (bytes.tag(0, "RIFF") && bytes.tag(8, "AVI ")) return true;
  // The size field of the ftyp box is below 16 MiB, so its first byte is zero; no text file starts with zero.
  // The brands avi*, he* and mif1 are those of still pictures.
  return bytes.u8(0) == 0 && bytes.tag(4, "ftyp") && !bytes.tag(8, "avi") && !bytes.tag(8, "he") &&
         !bytes.tag(8, "mif1");
}

absl::StatusOr<std::unique_ptr<Video>> Video::Open(std::string_view bytes, const DecodeLimits& limits) {
  if (!kOnlyOurFormats)
    return absl::InternalError(
        "videos are disabled: the environment variable that restricts FFmpeg's formats could not be set");
  if (!IsVideo(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a readable video, ", bytes.size(),
                     " bytes long; accepted formats are MP4, MOV, Matroska, WebM and AVI"));
  }
  SetUpOpenCv();
  return CatchExceptions("the video", [&]() -> absl::StatusOr<std::unique_ptr<Video>> {
    auto video = std::make_unique<OpenCvVideo>(bytes);
    if (absl::Status started = video->Start(bytes, limits); !started.ok()) return started;
    return video;
  });
}

}  // namespace saccade::server
