#include "server/decode/ffmpeg_video.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/log.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <opencv2/core.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/pictures/opencv.h"

namespace saccade::server {
namespace {

// Streams of one file: pictures, sounds, subtitles. Cameras write up to ten.
constexpr int kMaxStreams = 32;
// Bytes and time that FFmpeg looks through to find the frame rate of files that do not give it. These are its
// own defaults.
constexpr int64_t kMaxProbedBytes = 5'000'000;
constexpr int64_t kMaxProbedTime = int64_t{5} * AV_TIME_BASE;
constexpr int kReadBytes = 32 << 10;

// Decoders round the sides of a frame up to whole blocks, and FFmpeg rounds its rows up to 64 bytes.
constexpr int64_t kMaxRounding = 128;

// Decoders keep frames that later ones are predicted from: H.264 and H.265 at most 16, and at their highest
// levels for common sizes at most 48 million pixels together; VP9 and AV1 have eight. Three more are being
// written or shown.
constexpr int64_t kMaxReferencePixels = 48'000'000;
constexpr int64_t kMinReferences = 8;
constexpr int64_t kMaxReferences = 16;
constexpr int64_t kOtherFrames = 3;

// In one scan a decoder goes over all blocks of the frame, as in a JPEG. The frames of cameras have one scan.
constexpr int64_t kMaxScansOfFrame = 16;

// Frames that cannot be decoded, without one that can, after which the video ends.
constexpr int kMaxDamagedFrames = 64;

// Pixels of frames that are decoded without one that is shown. A decoder shows its first frame up to 16
// frames later, and not before a frame that needs no other one.
constexpr int64_t kMaxHiddenPixels = int64_t{1} << 29;

// Bytes that the frames and pieces of sound of a file have on average, at least, and how many times the
// file's bytes they may have together: some containers store once what all of them begin with.
constexpr int64_t kMinPacketBytes = 2;
constexpr int64_t kMaxPacketGrowth = 64;

constexpr char kCodecs[] =
    "H.264, H.265, VP8, VP9, AV1, MPEG-1, MPEG-2, MPEG-4, DivX 3, Motion JPEG, ProRes, FFV1 and raw "
    "frames";

bool IsAccepted(AVCodecID codec) {
  switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_MJPEG:
    case AV_CODEC_ID_PRORES:
    case AV_CODEC_ID_FFV1:
    case AV_CODEC_ID_RAWVIDEO:
      return true;
    default:
      return false;
  }
}

int64_t Rounded(int64_t side) {
  return (side + kMaxRounding - 1) / kMaxRounding * kMaxRounding + kMaxRounding;
}

// Maximum number of frames that a decoder holds at once.
int64_t MaxFrames(int64_t width, int64_t height) {
  return std::clamp(kMaxReferencePixels / (width * height), kMinReferences, kMaxReferences) + kOtherFrames;
}

absl::Status Undecodable(std::string_view bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the video of ", bytes.size(),
      " bytes cannot be decoded: it is damaged, truncated, or uses an unknown codec; try H.264 in MP4"));
}

// The number of scans of a Motion JPEG frame, or more if its metadata hold the same two bytes.
int64_t CountScans(const AVPacket& packet) {
  const std::string_view data(reinterpret_cast<const char*>(packet.data), static_cast<size_t>(packet.size));
  int64_t scans = 0;
  for (size_t at = data.find("\xFF\xDA"); at != data.npos; at = data.find("\xFF\xDA", at + 2)) ++scans;
  return scans;
}

struct FreeFormat {
  void operator()(AVFormatContext* format) const { avformat_close_input(&format); }
};
struct FreeIo {
  void operator()(AVIOContext* io) const {
    av_free(io->buffer);
    avio_context_free(&io);
  }
};
struct FreeCodec {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct FreeParser {
  void operator()(AVCodecParserContext* parser) const { av_parser_close(parser); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};

template <typename T, typename Free>
std::unique_ptr<T, Free> Owned(T* pointer, Free free) {
  if (pointer == nullptr) throw std::bad_alloc();
  return {pointer, free};
}

// The bytes as a file that FFmpeg reads.
class MemoryInput {
 public:
  // `wanted` must outlive the input.
  MemoryInput(std::string_view bytes, const StillWanted& wanted) : bytes_(bytes), wanted_(wanted) {
    auto* const buffer = static_cast<unsigned char*>(av_malloc(kReadBytes));
    if (buffer == nullptr) throw std::bad_alloc();
    AVIOContext* const io =
        avio_alloc_context(buffer, kReadBytes, /*write_flag=*/0, this, Read, nullptr, Seek);
    if (io == nullptr) av_free(buffer);
    io_ = Owned(io, FreeIo());
  }
  MemoryInput(const MemoryInput&) = delete;
  MemoryInput& operator=(const MemoryInput&) = delete;

  AVIOContext* io() const { return io_.get(); }
  // While the header is read, Read() asks whether the video is still wanted; afterwards the caller asks
  // between frames.
  void HeaderIsRead() { reads_header_ = false; }

 private:
  static int Read(void* opaque, uint8_t* to, int size) {
    auto* const self = static_cast<MemoryInput*>(opaque);
    if (self->reads_header_ && self->wanted_ && !self->wanted_().ok()) return AVERROR_EXIT;
    if (self->at_ >= self->bytes_.size()) return AVERROR_EOF;
    const size_t taken = std::min(static_cast<size_t>(size), self->bytes_.size() - self->at_);
    std::memcpy(to, self->bytes_.data() + self->at_, taken);
    self->at_ += taken;
    return static_cast<int>(taken);
  }

  static int64_t Seek(void* opaque, int64_t offset, int whence) {
    auto* const self = static_cast<MemoryInput*>(opaque);
    const auto size = static_cast<int64_t>(self->bytes_.size());
    if ((whence & AVSEEK_SIZE) != 0) return size;
    if (whence == SEEK_CUR) offset += static_cast<int64_t>(self->at_);
    if (whence == SEEK_END) offset += size;
    if (offset < 0) return AVERROR(EINVAL);
    self->at_ = static_cast<size_t>(offset);
    return offset;
  }

  const std::string_view bytes_;
  const StillWanted& wanted_;
  bool reads_header_ = true;
  size_t at_ = 0;
  std::unique_ptr<AVIOContext, FreeIo> io_;
};

// Allocates a decoder's frames and counts their bytes.
class FrameMemory {
 public:
  // Frames have at most `max_pixels` pixels, and at most `max_frames` exist at once.
  FrameMemory(int64_t max_pixels, int64_t max_frames)
      : max_pixels_(max_pixels), max_frames_(max_frames), frame_bytes_(max_pixels * 3 / 2) {}
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;

  // Maximum bytes of all frames. Most formats have 1.5 bytes for each pixel; the first frame of another
  // format raises it.
  int64_t max_bytes() const { return max_frames_ * frame_bytes_; }

  // Pixels of all frames that were allocated so far.
  int64_t pixels() const { return pixels_; }
  // Whether the frames since the last one that is shown have too many pixels. Then none is allocated.
  bool hides_too_many() const { return pixels_ - shown_pixels_ > kMaxHiddenPixels; }
  // A frame is shown.
  void Show() { shown_pixels_ = pixels_; }

  // A decoder's get_buffer2; its `opaque` is a FrameMemory, which outlives all frames.
  static int Allocate(AVCodecContext* codec, AVFrame* frame, int flags) {
    auto* const self = static_cast<FrameMemory*>(codec->opaque);
    if (int64_t{frame->width} > self->max_pixels_ / std::max(1, frame->height)) return AVERROR(EINVAL);
    if (self->hides_too_many()) return AVERROR(EINVAL);
    self->pixels_ += int64_t{frame->width} * frame->height;
    if (const int failed = avcodec_default_get_buffer2(codec, frame, flags); failed < 0) return failed;
    return self->Count(frame);
  }

 private:
  struct Counted {
    FrameMemory* memory;
    AVBufferRef* buffer;
    int64_t bytes;
  };

  int Count(AVFrame* frame) {
    int64_t bytes = 0;
    for (const AVBufferRef* buffer : frame->buf)
      bytes += buffer == nullptr ? 0 : static_cast<int64_t>(buffer->size);
    frame_bytes_ = std::max(frame_bytes_, bytes);
    if (bytes > max_bytes() - held_) return AVERROR(ENOMEM);
    auto* const counted = new (std::nothrow) Counted{this, frame->buf[0], bytes};
    if (counted == nullptr) return AVERROR(ENOMEM);
    AVBufferRef* const outer = av_buffer_create(frame->buf[0]->data, frame->buf[0]->size, Free, counted, 0);
    if (outer == nullptr) {
      delete counted;
      return AVERROR(ENOMEM);
    }
    frame->buf[0] = outer;
    held_ += bytes;
    return 0;
  }

  static void Free(void* opaque, uint8_t* /*data*/) {
    auto* const counted = static_cast<Counted*>(opaque);
    counted->memory->held_ -= counted->bytes;
    av_buffer_unref(&counted->buffer);
    delete counted;
  }

  const int64_t max_pixels_;
  const int64_t max_frames_;
  // Bytes of the largest frame.
  int64_t frame_bytes_;
  // Bytes of the frames that exist.
  int64_t held_ = 0;
  // Pixels of all frames so far, and of those until one was shown.
  int64_t pixels_ = 0;
  int64_t shown_pixels_ = 0;
};

class FfmpegVideo final : public Video {
 public:
  FfmpegVideo(std::string_view bytes, StillWanted wanted)
      : bytes_(bytes),
        wanted_(std::move(wanted)),
        input_(bytes, wanted_),
        packet_(Owned(av_packet_alloc(), FreePacket())) {}

  absl::Status Start(const char* container, const DecodeLimits& limits) {
    limits_ = limits;
    if (!OpenFile(container)) {
      const absl::Status wanted = wanted_ ? wanted_() : absl::OkStatus();
      return wanted.ok() ? Undecodable(bytes_) : wanted;
    }
    input_.HeaderIsRead();
    if (stream_ == nullptr) return Undecodable(bytes_);
    AVCodecParameters& claims = *stream_->codecpar;
    if (!IsAccepted(claims.codec_id)) {
      return absl::InvalidArgumentError(absl::StrCat("the video's codec is ",
                                                     avcodec_get_name(claims.codec_id), "; accepted are ",
                                                     kCodecs, "; try H.264 in MP4"));
    }
    if (claims.width < 1 || claims.height < 1) ReadSize(claims);
    rate_ = av_q2d(av_guess_frame_rate(format_.get(), stream_, nullptr));
    // The negation also rejects NaN.
    if (!(rate_ > 0 && rate_ <= kMaxFramesPerSecond) || claims.width < 1 || claims.height < 1)
      return Undecodable(bytes_);
    if (absl::Status fits = CheckPixels(claims.width, claims.height, limits); !fits.ok()) return fits;
    ReadRotation();
    SetSize(claims.width, claims.height);
    return OpenCodec(claims);
  }

  double frames_per_second() const override { return rate_; }
  int64_t claimed_frames() const override {
    if (stream_->nb_frames > 0) return stream_->nb_frames;
    const double seconds = format_->duration > 0
                               ? static_cast<double>(format_->duration) / AV_TIME_BASE
                               : static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
    const double claimed = std::floor(seconds * rate_ + 0.5);
    return claimed > 0 && claimed < 1e9 ? std::lround(claimed) : 0;
  }
  models::Size size() const override { return size_; }
  int64_t memory_bytes() const override { return memory_->max_bytes(); }
  // Some decoders allocate their frames themselves, or show packets as they are.
  int64_t decoded_pixels() const override { return std::max(memory_->pixels(), shown_pixels_); }

  absl::Status status() const override { return status_; }

  bool Skip() override {
    if (!status_.ok()) return false;
    if (!NextFrame()) {
      // FFmpeg sets the size to zero at a frame of more pixels than the decoder may allocate.
      if (status_.ok() && codec_->width == 0) status_ = TooLarge();
      if (status_.ok() && memory_->hides_too_many()) status_ = TooManyHidden();
      return false;
    }
    memory_->Show();
    shown_pixels_ += int64_t{frame_->width} * frame_->height;
    // Decoders may allocate more pixels than the limit, because they round sides up. No frame may show more.
    status_ = CheckPixels(frame_->width, frame_->height, limits_);
    if (status_.ok() && !std::exchange(any_frame_, true)) SetSize(frame_->width, frame_->height);
    return status_.ok();
  }

  absl::StatusOr<DecodedPicture> Last() override {
    return CatchExceptions("a frame of the video", [&]() -> absl::StatusOr<DecodedPicture> {
      cv::Mat upright = Upright(ToBgr());
      if (upright.empty()) return absl::InvalidArgumentError("a frame of the video cannot be decoded");
      if (upright.rows != size_.height || upright.cols != size_.width)
        return absl::InvalidArgumentError("the frames of the video have different sizes; expected one size");
      DecodedPicture picture;
      picture.sent = size_;
      const auto kept = std::make_shared<const cv::Mat>(std::move(upright));
      picture.pixels = {
          .data = kept->data, .row_bytes = kept->step, .width = kept->cols, .height = kept->rows};
      picture.owner = kept;
      return picture;
    });
  }

 private:
  // Reads the container's header and finds the first stream of pictures. Nothing is decoded: no codec is on
  // the list of those that may look at frames.
  bool OpenFile(const char* container) {
    AVFormatContext* format = avformat_alloc_context();
    if (format == nullptr) throw std::bad_alloc();
    format->pb = input_.io();
    format->io_open = [](AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
      return AVERROR(EPERM);
    };
    format->codec_whitelist = av_strdup("none");
    format->max_streams = kMaxStreams;
    format->probesize = kMaxProbedBytes;
    format->max_analyze_duration = kMaxProbedTime;
    // Frees `format` if it fails.
    if (avformat_open_input(&format, "", av_find_input_format(container), nullptr) < 0) return false;
    format_.reset(format);
    // Without decoders it never finds all parameters of a stream, but it finds the frame rate.
    avformat_find_stream_info(format, nullptr);
    for (unsigned i = 0; i < format->nb_streams && stream_ == nullptr; ++i) {
      AVStream* const stream = format->streams[i];
      const bool cover = (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
      if (stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !cover) stream_ = stream;
    }
    return true;
  }

  // Reads the next packet of the stream. False at the end of the file, and if status_ is an error.
  bool ReadPacket() {
    do {
      av_packet_unref(packet_.get());
      if (av_read_frame(format_.get(), packet_.get()) < 0) return false;
      status_ = CountPacket();
      if (!status_.ok()) return false;
    } while (packet_->stream_index != stream_->index);
    return true;
  }

  absl::Status CountPacket() {
    ++packets_;
    packet_bytes_ += packet_->size;
    const auto size = static_cast<int64_t>(bytes_.size());
    if (packets_ <= size / kMinPacketBytes && packet_bytes_ <= kMaxPacketGrowth * size)
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the video cannot be read: ", packets_,
                                                   " of its frames and pieces of sound have ", packet_bytes_,
                                                   " bytes, but the file only ", size, "; write it again"));
  }

  // For MPEG-4, FFmpeg ignores the size that MP4 files give. Reads it from the header of the first frame.
  void ReadSize(AVCodecParameters& claims) {
    const std::unique_ptr<AVCodecParserContext, FreeParser> parser(av_parser_init(claims.codec_id));
    const auto header = Owned(avcodec_alloc_context3(nullptr), FreeCodec());
    if (parser == nullptr || avcodec_parameters_to_context(header.get(), &claims) < 0 || !ReadPacket())
      return;
    packet_is_read_ = true;
    parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    uint8_t* data = nullptr;
    int size = 0;
    av_parser_parse2(parser.get(), header.get(), &data, &size, packet_->data, packet_->size, AV_NOPTS_VALUE,
                     AV_NOPTS_VALUE, 0);
    claims.width = header->width;
    claims.height = header->height;
  }

  absl::Status OpenCodec(const AVCodecParameters& claims) {
    const AVCodec* const codec = avcodec_find_decoder(claims.codec_id);
    if (codec == nullptr) return Undecodable(bytes_);
    const int64_t max_pixels =
        std::min(Rounded(claims.width) * Rounded(claims.height), MaxAllocatedPixels(limits_));
    memory_.emplace(max_pixels, MaxFrames(claims.width, claims.height));
    codec_ = Owned(avcodec_alloc_context3(codec), FreeCodec());
    frame_ = Owned(av_frame_alloc(), FreeFrame());
    if (avcodec_parameters_to_context(codec_.get(), &claims) < 0) return Undecodable(bytes_);
    // Several threads would hold a frame each.
    codec_->thread_count = 1;
    codec_->max_pixels = max_pixels;
    codec_->opaque = &*memory_;
    codec_->get_buffer2 = FrameMemory::Allocate;
    codec_->pkt_timebase = stream_->time_base;
    if (avcodec_open2(codec_.get(), codec, nullptr) < 0) return Undecodable(bytes_);
    return absl::OkStatus();
  }

  // Decodes the next frame. False at the end of the video, and where it is damaged.
  bool NextFrame() {
    for (int damaged = 0; damaged <= kMaxDamagedFrames && !memory_->hides_too_many();) {
      if (status_.ok() && wanted_) status_ = wanted_();
      if (!status_.ok()) return false;
      const int received = avcodec_receive_frame(codec_.get(), frame_.get());
      if (received >= 0) return true;
      if (received == AVERROR_EOF) return false;
      if (received != AVERROR(EAGAIN)) ++damaged;
      if (!Feed()) return false;
    }
    return false;
  }

  absl::Status TooLarge() const {
    return absl::InvalidArgumentError(absl::StrCat(
        "a frame of the video is damaged, or larger than ", stream_->codecpar->width, " x ",
        stream_->codecpar->height, " pixels, the size that the file's header gives; try H.264 in MP4"));
  }

  absl::Status TooManyHidden() const {
    return absl::InvalidArgumentError(
        absl::StrCat("frames of the video that follow each other and are not shown have more than ",
                     kMaxHiddenPixels, " pixels together; write it again"));
  }

  void ReadRotation() {
    const uint8_t* const matrix = av_stream_get_side_data(stream_, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
    if (matrix == nullptr) return;
    const double angle = av_display_rotation_get(reinterpret_cast<const int32_t*>(matrix));
    if (std::isnan(angle)) return;
    const auto quarters = static_cast<int>(std::lround(-angle / 90));
    if (std::abs(angle + 90 * quarters) < 0.5) quarters_ = (quarters % 4 + 4) % 4;
  }

  void SetSize(int64_t width, int64_t height) {
    size_ = quarters_ % 2 == 0 ? models::Size{height, width} : models::Size{width, height};
  }

  // Gives the decoder the next packet of the stream, or the end of the file. False if it does not take it.
  bool Feed() {
    if (!std::exchange(packet_is_read_, false) && !ReadPacket())
      return avcodec_send_packet(codec_.get(), nullptr) >= 0;
    if (codec_->codec_id == AV_CODEC_ID_MJPEG && CountScans(*packet_) > kMaxScansOfFrame) return false;
    return avcodec_send_packet(codec_.get(), packet_.get()) >= 0;
  }

  // Converts the last frame, as it is stored. Empty if that is impossible.
  cv::Mat ToBgr() {
    const int width = frame_->width, height = frame_->height;
    const auto format = static_cast<AVPixelFormat>(frame_->format);
    if (frame_->data[0] == nullptr) return {};
    scaler_.reset(sws_getCachedContext(scaler_.release(), width, height, format, width, height,
                                       AV_PIX_FMT_BGR24, SWS_BICUBIC, nullptr, nullptr, nullptr));
    if (scaler_ == nullptr) return {};
    // FFmpeg writes groups of pixels, also beyond the last one of a row.
    constexpr int kGroup = 64;
    const cv::Mat padded(height, (width + kGroup - 1) / kGroup * kGroup, CV_8UC3);
    uint8_t* const to[] = {padded.data, nullptr, nullptr, nullptr};
    const int strides[] = {static_cast<int>(padded.step), 0, 0, 0};
    if (sws_scale(scaler_.get(), frame_->data, frame_->linesize, 0, height, to, strides) != height) return {};
    return padded.colRange(0, width);
  }

  cv::Mat Upright(cv::Mat picture) const {
    if (quarters_ == 0 || picture.empty()) return picture;
    cv::Mat turned;
    if (quarters_ == 2) {
      cv::flip(picture, turned, -1);
      return turned;
    }
    cv::transpose(picture, turned);
    picture.release();
    cv::Mat upright;
    cv::flip(turned, upright, quarters_ == 1 ? 1 : 0);
    return upright;
  }

  const std::string_view bytes_;
  const StillWanted wanted_;
  DecodeLimits limits_;
  // Destroyed after everything that refers to them.
  MemoryInput input_;
  std::optional<FrameMemory> memory_;
  std::unique_ptr<AVFormatContext, FreeFormat> format_;
  AVStream* stream_ = nullptr;
  std::unique_ptr<AVCodecContext, FreeCodec> codec_;
  std::unique_ptr<AVFrame, FreeFrame> frame_;
  std::unique_ptr<AVPacket, FreePacket> packet_;
  std::unique_ptr<SwsContext, FreeScaler> scaler_;
  // True if `packet_` holds a packet that the decoder has not been given.
  bool packet_is_read_ = false;
  double rate_ = 0;
  // Quarter turns, clockwise, that make a frame upright.
  int quarters_ = 0;
  models::Size size_;
  // True once a frame was decoded, whose size then is the video's.
  bool any_frame_ = false;
  int64_t shown_pixels_ = 0;
  // Packets that were read so far, of all streams, and their bytes.
  int64_t packets_ = 0;
  int64_t packet_bytes_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Video>> OpenWithFfmpeg(std::string_view bytes, const char* container,
                                                      const DecodeLimits& limits, const StillWanted& wanted) {
  SetUpOpenCv();
  // Errors are returned to the client; by default FFmpeg would also print each of them.
  av_log_set_level(AV_LOG_QUIET);
  auto video = std::make_unique<FfmpegVideo>(bytes, wanted);
  if (absl::Status started = video->Start(container, limits); !started.ok()) return started;
  return video;
}

}  // namespace saccade::server
