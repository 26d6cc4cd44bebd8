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

// FFmpeg judges a file by all of its beginning, and knows formats that name other files and have them read
// (DASH, HLS). OpenCV hands it such options by the environment alone, which is changed before there are
// threads.
const bool kOnlyOurFormats =
    setenv("OPENCV_FFMPEG_CAPTURE_OPTIONS",
           "protocol_whitelist;file|format_whitelist;mov,mp4,matroska,webm,avi", 1) == 0;

// A file in memory alone, by a path that others can open while it lives.
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
  return absl::InvalidArgumentError(absl::StrCat("the video of ", bytes.size(),
                                                 " bytes cannot be decoded: it is damaged, cut short, or in "
                                                 "a codec that is not known; try H.264 in MP4"));
}

class OpenCvVideo final : public Video {
 public:
  explicit OpenCvVideo(std::string_view bytes) : file_(bytes) {}

  absl::Status Start(std::string_view bytes, const DecodeLimits& limits) {
    if (!file_.ok()) return absl::ResourceExhaustedError("no memory for the video; try again later");
    if (!capture_.open(file_.path(), cv::CAP_FFMPEG)) return Undecodable(bytes);
    rate_ = capture_.get(cv::CAP_PROP_FPS);
    size_ = {std::lround(capture_.get(cv::CAP_PROP_FRAME_HEIGHT)),
             std::lround(capture_.get(cv::CAP_PROP_FRAME_WIDTH))};
    // Not a number is in no interval.
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
      // What is not there any more is the end.
      return false;
    }
  }

  absl::StatusOr<DecodedPicture> Last() override {
    return Answered("a frame of the video", [&]() -> absl::StatusOr<DecodedPicture> {
      cv::Mat frame;
      if (!capture_.retrieve(frame) || frame.empty() || frame.type() != CV_8UC3)
        return absl::InvalidArgumentError("a frame of the video cannot be decoded");
      if (frame.rows != size_.height || frame.cols != size_.width)
        return absl::InvalidArgumentError("the video's frames change their size");
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
  // Less than 16 MiB of brands, so that it begins with a zero: nothing that starts as a text does. The brands
  // of still pictures are another thing.
  return bytes.u8(0) == 0 && bytes.tag(4, "ftyp") && !bytes.tag(8, "avi") && !bytes.tag(8, "he") &&
         !bytes.tag(8, "mif1");
}

absl::StatusOr<std::unique_ptr<Video>> Video::Open(std::string_view bytes, const DecodeLimits& limits) {
  if (!kOnlyOurFormats) return absl::InternalError("videos cannot be read: FFmpeg's formats are not bounded");
  if (!IsVideo(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a video that can be read, ", bytes.size(),
                     " bytes long; accepted are MP4, MOV, Matroska, WebM and AVI"));
  }
  SetUpOpenCv();
  return Answered("the video", [&]() -> absl::StatusOr<std::unique_ptr<Video>> {
    auto video = std::make_unique<OpenCvVideo>(bytes);
    if (absl::Status started = video->Start(bytes, limits); !started.ok()) return started;
    return video;
  });
}

}  // namespace saccade::server
