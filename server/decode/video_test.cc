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

#include "server/decode/picture_fixtures.h"

#ifdef SACCADE_ASAN
#include <sanitizer/lsan_interface.h>
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
  // FFmpeg, with the restricted formats, does not open it as a video either.
  const std::string plain = testing::TempDir() + "video_test_" + std::to_string(getpid()) + ".mpd";
  std::ofstream(plain, std::ios::binary) << manifest;
  EXPECT_FALSE(IsOpenedByFfmpeg(plain));
  const std::string options = getenv("OPENCV_FFMPEG_CAPTURE_OPTIONS");
  unsetenv("OPENCV_FFMPEG_CAPTURE_OPTIONS");
  EXPECT_TRUE(IsOpenedByFfmpeg(plain)) << "this test tests nothing";
  setenv("OPENCV_FFMPEG_CAPTURE_OPTIONS", options.c_str(), 1);
  std::remove(plain.c_str());
  std::remove(path.c_str());
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
