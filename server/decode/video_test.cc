#include "server/decode/video.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <opencv2/videoio.hpp>
#include <random>
#include <string>
#include <vector>

#include "server/decode/testing/video_fixtures.h"
#include "server/pictures/testing/picture_fixtures.h"

#ifdef SACCADE_ASAN
#include <sanitizer/lsan_interface.h>

// The encoder leaks. OpenCV writes this test's videos with it; nothing else here uses it.
extern "C" const char* __lsan_default_suppressions() { return "leak:libx265"; }
#endif

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// All pixels of frame k have the value 10 k.
std::string MakeVideo(int frames, double rate) {
  const std::string path = testing::TempDir() + "video_test_" + std::to_string(getpid()) + ".avi";
  cv::VideoWriter writer(path, cv::CAP_OPENCV_MJPEG, cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), rate,
                         cv::Size(32, 16));
  for (int i = 0; i < frames; ++i) writer.write(cv::Mat(16, 32, CV_8UC3, cv::Scalar::all(10 * i)));
  writer.release();
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  return bytes;
}

TEST(VideoTest, ShowsItsFrames) {
  const std::string bytes = MakeVideo(5, 10);
  ASSERT_TRUE(IsVideo(bytes));
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_DOUBLE_EQ((*video)->frames_per_second(), 10);
  EXPECT_EQ((*video)->claimed_frames(), 5);
  EXPECT_EQ((*video)->size(), (models::Size{16, 32}));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE((*video)->Skip());
    if (i == 1) continue;
    const auto frame = (*video)->Last();
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->sent, (models::Size{16, 32}));
    EXPECT_NEAR(frame->pixels.data[0], 10 * i, 3);
  }
  EXPECT_FALSE((*video)->Skip());
}

TEST(VideoTest, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(IsVideo(""));
  EXPECT_FALSE(IsVideo("#EXTM3U\nhttp://127.0.0.1/secret"));
  const auto playlist = Video::Open("#EXTM3U\nhttp://127.0.0.1/secret", {});
  EXPECT_EQ(playlist.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(playlist.status().message()), HasSubstr("accepted formats are MP4"));
  const auto empty = Video::Open(std::string("RIFF....AVI LIST"), {});
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
  const auto large = Video::Open(MakeVideo(1, 10), {.max_pixels = 100});
  EXPECT_THAT(std::string(large.status().message()), HasSubstr("at most 100 pixels"));
}

struct Encoding {
  const char* extension;
  const char* fourcc;
};

// A moving picture, as a file that OpenCV writes; "" if it cannot write such files.
std::string MakeMovie(const Encoding& encoding, int width, int height, int frames) {
  const std::string path = testing::TempDir() + "video_test_" + std::to_string(getpid()) + encoding.extension;
  const char* const code = encoding.fourcc;
  cv::VideoWriter writer(path, cv::CAP_FFMPEG, cv::VideoWriter::fourcc(code[0], code[1], code[2], code[3]),
                         25, cv::Size(width, height));
  if (!writer.isOpened()) return "";
  const cv::Mat wide = SmoothPicture(width + 4 * frames, height);
  for (int i = 0; i < frames; ++i) writer.write(wide.colRange(4 * i, 4 * i + width).clone());
  writer.release();
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  return bytes;
}

// The frames that OpenCV's own reader finds.
std::vector<cv::Mat> FramesOfOpenCv(const std::string& bytes, double& rate) {
  const std::string path = testing::TempDir() + "video_test_" + std::to_string(getpid()) + ".movie";
  std::ofstream(path, std::ios::binary) << bytes;
  std::vector<cv::Mat> frames;
  cv::VideoCapture capture(path, cv::CAP_FFMPEG);
  rate = capture.get(cv::CAP_PROP_FPS);
  for (cv::Mat frame; capture.read(frame);) frames.push_back(frame.clone());
  std::remove(path.c_str());
  return frames;
}

// Sides that are no whole blocks too.
TEST(VideoTest, FramesAreThoseOfOpenCv) {
  int written = 0;
  for (const Encoding& encoding :
       {Encoding{".avi", "MJPG"}, Encoding{".mp4", "mp4v"}, Encoding{".mp4", "avc1"},
        Encoding{".mov", "mp4v"}, Encoding{".mkv", "mp4v"}, Encoding{".mkv", "FFV1"},
        Encoding{".mkv", "VP80"}, Encoding{".mkv", "VP90"}, Encoding{".avi", "XVID"},
        Encoding{".mp4", "hvc1"}}) {
    for (const cv::Size size : {cv::Size(160, 96), cv::Size(102, 58)}) {
      SCOPED_TRACE(std::string(encoding.extension) + " " + encoding.fourcc + " " +
                   std::to_string(size.width));
      const std::string bytes = MakeMovie(encoding, size.width, size.height, 12);
      if (bytes.empty()) continue;
      ++written;
      double rate = 0;
      const std::vector<cv::Mat> expected = FramesOfOpenCv(bytes, rate);
      auto video = Video::Open(bytes, {});
      ASSERT_TRUE(video.ok()) << video.status();
      EXPECT_DOUBLE_EQ((*video)->frames_per_second(), rate);
      EXPECT_EQ((*video)->size(), (models::Size{size.height, size.width}));
      for (const cv::Mat& frame : expected) {
        ASSERT_TRUE((*video)->Skip());
        const auto shown = (*video)->Last();
        ASSERT_TRUE(shown.ok()) << shown.status();
        const cv::Mat pixels(size, CV_8UC3, const_cast<uint8_t*>(shown->pixels.data),
                             shown->pixels.row_bytes);
        EXPECT_EQ(cv::norm(pixels, frame, cv::NORM_INF), 0);
      }
      EXPECT_EQ(expected.size(), 12u);
      EXPECT_FALSE((*video)->Skip());
      EXPECT_TRUE((*video)->status().ok()) << (*video)->status();
    }
  }
  EXPECT_GE(written, 6) << "OpenCV writes too few formats here for this test to mean anything";
}

// A DASH manifest disguised as an MP4; FFmpeg would open the file that it names.
std::string Manifest(const std::string& beginning, const std::string& named) {
  return beginning +
         "<MPD profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\" type=\"static\" "
         "mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"video/mp4\">"
         "<Representation id=\"1\" bandwidth=\"1000\" mimeType=\"video/mp4\"><BaseURL>" +
         named + "</BaseURL></Representation></AdaptationSet></Period></MPD>\n";
}

bool IsOpenedByFfmpeg(const std::string& path) {
#ifdef SACCADE_ASAN
  // FFmpeg's DASH reader leaks a string of the manifest.
  const __lsan::ScopedDisabler its_leaks;
#endif
  return cv::VideoCapture(path, cv::CAP_FFMPEG).isOpened();
}

TEST(VideoTest, NoOtherFileIsRead) {
  const std::string path = testing::TempDir() + "video_test_" + std::to_string(getpid()) + ".mp4";
  std::ofstream(path, std::ios::binary) << MakeVideo(5, 10);
  const std::string manifest = Manifest("<!--ftypjp2 -->\n", path);
  EXPECT_FALSE(IsVideo(manifest));
  EXPECT_EQ(Video::Open(manifest, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Video::Open("RIFF....AVI " + manifest, {}).status().code(), absl::StatusCode::kInvalidArgument);
  // FFmpeg opens it as a video if it may choose the format.
  const std::string plain = testing::TempDir() + "video_test_" + std::to_string(getpid()) + ".mpd";
  std::ofstream(plain, std::ios::binary) << manifest;
  EXPECT_TRUE(IsOpenedByFfmpeg(plain)) << "this test tests nothing";
  std::remove(plain.c_str());
  std::remove(path.c_str());
}

std::string Jpeg(int width, int height) { return Encode(".jpg", SmoothPicture(width, height)); }

// Decoders may allocate frames that are larger than the header claims by what they round up. That is no way
// around the limit.
TEST(VideoTest, AFileThatClaimsLittleAndHoldsMoreThanMayBe) {
  const DecodeLimits limits = {.max_pixels = 100 * 100};
  const auto first = [&](models::Size claimed, int width, int height) {
    const std::string bytes = MotionJpegAvi(claimed, {Jpeg(width, height), Jpeg(width, height)});
    auto video = Video::Open(bytes, limits);
    if (!video.ok()) return video.status();
    EXPECT_EQ((*video)->size(), claimed);
    const bool shown = (*video)->Skip();
    EXPECT_EQ(shown, (*video)->status().ok());
    // A refused video stays refused.
    if (!shown) {
      EXPECT_FALSE((*video)->Skip());
    }
    return (*video)->status();
  };
  EXPECT_TRUE(first({100, 100}, 100, 100).ok());
  EXPECT_TRUE(first({16, 16}, 100, 100).ok());
  for (const models::Size claimed : {models::Size{100, 100}, models::Size{16, 16}, models::Size{1, 1}}) {
    const absl::Status over = first(claimed, 101, 100);
    EXPECT_EQ(over.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(over.message()), HasSubstr("101 x 100 pixels large; at most 10000 pixels"));
  }
  const absl::Status beyond = first({16, 16}, 640, 480);
  EXPECT_EQ(beyond.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(beyond.message()), HasSubstr("larger than 16 x 16 pixels, the size that the file"));
}

TEST(VideoTest, FramesThatBecomeLargerThanMayBe) {
  const DecodeLimits limits = {.max_pixels = 100 * 100};
  for (const auto& [side, refusal] : {std::pair{104, "104 x 104 pixels large; at most 10000 pixels"},
                                      std::pair{640, "larger than 64 x 64 pixels"}}) {
    const std::string bytes =
        MotionJpegAvi({64, 64}, {Jpeg(64, 64), Jpeg(64, 64), Jpeg(side, side), Jpeg(64, 64)});
    auto video = Video::Open(bytes, limits);
    ASSERT_TRUE(video.ok()) << video.status();
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE((*video)->Skip());
      EXPECT_EQ((*video)->Last()->sent, (models::Size{64, 64}));
    }
    EXPECT_FALSE((*video)->Skip());
    EXPECT_EQ((*video)->status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string((*video)->status().message()), HasSubstr(refusal));
  }
}

// Frames of another size that may be are decoded, and not shown.
TEST(VideoTest, FramesThatChangeTheirSize) {
  const std::string bytes = MotionJpegAvi({64, 64}, {Jpeg(64, 64), Jpeg(72, 48), Jpeg(64, 64)});
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  ASSERT_TRUE((*video)->Skip());
  ASSERT_TRUE((*video)->Skip());
  EXPECT_THAT(std::string((*video)->Last().status().message()), HasSubstr("have different sizes"));
  EXPECT_EQ((*video)->size(), (models::Size{64, 64}));
  ASSERT_TRUE((*video)->Skip());
  EXPECT_TRUE((*video)->Last().ok());
  EXPECT_FALSE((*video)->Skip());
  EXPECT_TRUE((*video)->status().ok());
}

TEST(VideoTest, DamagedFilesEndSooner) {
  std::mt19937 random(3);
  const std::string bytes = MakeVideo(4, 10);
  for (int i = 0; i < 100; ++i) {
    std::string damaged = Mutate(bytes, random);
    auto video = Video::Open(damaged, {});
    if (!video.ok()) continue;
    int frames = 0;
    while (frames < 1000 && (*video)->Skip()) {
      ++frames;
      static_cast<void>((*video)->Last());
    }
    EXPECT_LT(frames, 1000);
  }
}

}  // namespace
}  // namespace saccade::server
