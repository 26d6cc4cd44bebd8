#include "server/decode/workers/worker_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <opencv2/videoio.hpp>
#include <random>
#include <string>
#include <vector>

#include "server/decode/testing/video_fixtures.h"
#include "server/pictures/testing/picture_fixtures.h"
#include "server/pictures/testing/tiff_fixtures.h"

namespace saccade::server {
namespace {

// Pixels without gaps between the rows.
std::string PixelsOf(const DecodedPicture& picture) {
  std::string all;
  for (int64_t y = 0; y < picture.pixels.height; ++y) {
    all.append(reinterpret_cast<const char*>(picture.pixels.data + y * picture.pixels.row_bytes),
               3 * static_cast<size_t>(picture.pixels.width));
  }
  return all;
}

Picture File(std::string_view bytes) { return EncodedPicture{.data = {.owner = nullptr, .bytes = bytes}}; }

models::ImageInput Input(int side) {
  models::ImageInput input;
  input.height = input.width = side;
  input.short_side = side;
  return input;
}

class WorkerDecoderTest : public ::testing::Test {
 protected:
  static std::unique_ptr<WorkerPool> Make() {
    auto pool = WorkerPool::Create({.program = SACCADE_DECODE_WORKER, .max_idle = 2}, Clock::Real());
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }

  // Expects that both decoders give the same picture or the same error.
  void ExpectTheSame(const std::string& bytes, int side, const std::optional<Region>& region = std::nullopt) {
    const Picture file = File(bytes);
    const auto header = threads_.ReadHeader(file, nullptr);
    const auto told = workers_.ReadHeader(file, nullptr);
    ASSERT_EQ(header.status(), told.status());
    if (!header.ok()) return;
    EXPECT_EQ(header->format, told->format);
    EXPECT_EQ(header->pixels(), told->pixels());
    const auto expected = threads_.Decode(file, *header, Input(side), region, nullptr);
    const auto decoded = workers_.Decode(file, *told, Input(side), region, nullptr);
    ASSERT_EQ(expected.status(), decoded.status());
    if (!expected.ok()) return;
    EXPECT_EQ(expected->sent, decoded->sent);
    EXPECT_EQ(expected->whole, decoded->whole);
    EXPECT_EQ(expected->rgb, decoded->rgb);
    EXPECT_EQ(expected->reduction, decoded->reduction);
    EXPECT_TRUE(PixelsOf(*expected) == PixelsOf(*decoded)) << bytes.size() << " bytes, side " << side;
  }

  std::unique_ptr<WorkerPool> pool_ = Make();
  const ThreadDecoder threads_{DecodeLimits()};
  const WorkerDecoder workers_{DecodeLimits(), pool_.get()};
};

TEST_F(WorkerDecoderTest, PicturesAreThoseOfThreads) {
  const cv::Mat picture = SmoothPicture(300, 171);
  cv::Mat grey, deep, clear;
  cv::extractChannel(picture, grey, 1);
  picture.convertTo(deep, CV_16U, 257);
  const cv::Mat channels[] = {picture, grey};
  cv::merge(channels, 2, clear);
  std::vector<std::string> files;
  for (const char* extension : {".jpg", ".png", ".webp", ".bmp", ".tiff"}) {
    files.push_back(Encode(extension, picture));
    if (std::string(extension) != ".webp") files.push_back(Encode(extension, grey));
  }
  files.push_back(Encode(".png", deep));
  files.push_back(Encode(".tiff", deep));
  files.push_back(Encode(".png", clear));
  files.push_back(Encode(".webp", clear));
  files.push_back(Encode(".webp", clear, {cv::IMWRITE_WEBP_QUALITY, 101}));
  files.push_back(Encode(".jpg", picture, {cv::IMWRITE_JPEG_PROGRESSIVE, 1}));
  for (char orientation = 1; orientation <= 8; ++orientation)
    files.push_back(WithSegment(files[0], '\xE1', ExifOrientation(orientation)));
  for (const std::string& file : files) {
    for (const int side : {300, 40, 20}) ExpectTheSame(file, side);
    ExpectTheSame(file, 300, Region{.x = 7, .y = 5, .width = 100, .height = 90});
    ExpectTheSame(file, 300, Region{.x = 7, .y = 5, .width = 300, .height = 300});
  }
  EXPECT_EQ(pool_->counts().started, 1);
}

TEST_F(WorkerDecoderTest, RegionsAreThoseOfThreads) {
  constexpr DecodeLimits kSmall = {.max_pixels = 10'000, .max_bytes = 1 << 24};
  const ThreadDecoder threads(kSmall);
  const WorkerDecoder workers(kSmall, pool_.get());
  const std::string bytes = Tiff({.orientation = ORIENTATION_RIGHTTOP}, 203, 141);
  const Picture file = File(bytes);
  const auto header = threads.ReadHeader(file, nullptr);
  const auto told = workers.ReadHeader(file, nullptr);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_TRUE(told->by_regions);
  EXPECT_EQ(told->width, header->width);
  EXPECT_EQ(told->height, header->height);
  const auto expected = threads.OpenRegions(file, *header, nullptr);
  const auto regions = workers.OpenRegions(file, *told, nullptr);
  ASSERT_TRUE(regions.ok()) << regions.status();
  // Regions that need more of the shared memory than the one before, and one that does not exist.
  for (const Region& region :
       std::vector<Region>{{0, 0, 5, 5}, {30, 20, 90, 100}, {7, 9, 3, 3}, {140, 0, 10, 9}}) {
    const auto one = (*expected)->Read(region);
    const auto other = (*regions)->Read(region);
    ASSERT_EQ(one.status(), other.status());
    if (!one.ok()) continue;
    EXPECT_EQ(one->whole, other->whole);
    EXPECT_TRUE(PixelsOf(*one) == PixelsOf(*other));
    const auto alone = workers.Decode(file, *told, Input(8), region, nullptr);
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_TRUE(PixelsOf(*one) == PixelsOf(*alone));
  }
  EXPECT_EQ(threads.Decode(file, *header, Input(8), {}, nullptr).status(),
            workers.Decode(file, *told, Input(8), {}, nullptr).status());
}

TEST_F(WorkerDecoderTest, DamageIsToldAsByThreads) {
  std::mt19937 random(1);
  const cv::Mat picture = SmoothPicture(64, 48);
  for (const char* extension : {".jpg", ".png", ".webp", ".bmp", ".tiff"}) {
    const std::string whole = Encode(extension, picture);
    for (int i = 0; i < 60; ++i) ExpectTheSame(Mutate(whole, random), 64);
  }
  ExpectTheSame("", 64);
  ExpectTheSame("II*", 64);
  EXPECT_EQ(pool_->counts().started, 1) << "no worker had to be replaced";
}

TEST_F(WorkerDecoderTest, TwoPicturesAreHeldAtTheSameTime) {
  const std::string one = Encode(".png", SmoothPicture(40, 30));
  const std::string other = Encode(".png", SmoothPicture(90, 20));
  const auto first =
      workers_.Decode(File(one), *workers_.ReadHeader(File(one), nullptr), Input(20), {}, nullptr);
  const auto second =
      workers_.Decode(File(other), *workers_.ReadHeader(File(other), nullptr), Input(20), {}, nullptr);
  EXPECT_EQ(PixelsOf(*first), PixelsOf(*threads_.Decode(File(one), *threads_.ReadHeader(File(one), nullptr),
                                                        Input(20), {}, nullptr)));
  EXPECT_EQ(second->sent, (models::Size{20, 90}));
}

TEST_F(WorkerDecoderTest, WhatIsCopiedIsTold) {
  EXPECT_EQ(workers_.CopiedBytes(File("12345")), 5);
  EXPECT_EQ(threads_.CopiedBytes(File("12345")), 0);
  EXPECT_EQ(workers_.CopiedBytes(RawPicture()), 0);
  EXPECT_EQ(workers_.CopiedVoxelBytes(File(""), {.depth = 2, .height = 3, .width = 4}), 96);
  EXPECT_EQ(workers_.CopiedVoxelBytes(RawVolume(), {.depth = 2, .height = 3, .width = 4}), 0);
}

// Frames of growing brightness.
std::string MakeVideo(int frames) {
  const std::string path = ::testing::TempDir() + "worker_decoder_test_" + std::to_string(getpid()) + ".avi";
  cv::VideoWriter writer(path, cv::CAP_OPENCV_MJPEG, cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 10,
                         cv::Size(48, 16));
  for (int i = 0; i < frames; ++i) writer.write(SmoothPicture(48, 16) + cv::Scalar::all(5 * i));
  writer.release();
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  return bytes;
}

TEST_F(WorkerDecoderTest, VideosAreThoseOfThreads) {
  const std::string bytes = MakeVideo(4);
  const auto expected = threads_.OpenVideo(bytes, nullptr);
  const auto video = workers_.OpenVideo(bytes, nullptr);
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_EQ((*video)->frames_per_second(), (*expected)->frames_per_second());
  EXPECT_EQ((*video)->claimed_frames(), (*expected)->claimed_frames());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE((*video)->Skip() && (*expected)->Skip());
    EXPECT_EQ((*video)->size(), (*expected)->size());
    EXPECT_EQ((*video)->memory_bytes(), (*expected)->memory_bytes());
    EXPECT_TRUE(PixelsOf(*(*video)->Last()) == PixelsOf(*(*expected)->Last()));
  }
  EXPECT_FALSE((*video)->Skip());
  EXPECT_TRUE((*video)->status().ok());
  EXPECT_EQ(workers_.OpenVideo("RIFF....AVI LIST", nullptr).status(),
            threads_.OpenVideo("RIFF....AVI LIST", nullptr).status());
}

// What a file claims and holds is told alike, also where its claims are no frame's.
TEST_F(WorkerDecoderTest, FramesThatAreTooLarge) {
  const std::string frame = Encode(".jpg", SmoothPicture(640, 480));
  for (const models::Size claimed : {models::Size{64, 64}, models::Size{1, 20'000'000},
                                     models::Size{60'000'000, 1}, models::Size{65'535, 1'000}}) {
    SCOPED_TRACE(std::to_string(claimed.width));
    const std::string bytes = MotionJpegAvi(claimed, {frame});
    const auto expected = threads_.OpenVideo(bytes, nullptr);
    const auto video = workers_.OpenVideo(bytes, nullptr);
    ASSERT_EQ(video.status(), expected.status());
    if (!video.ok()) continue;
    EXPECT_EQ((*video)->Skip(), (*expected)->Skip());
    EXPECT_EQ((*video)->status(), (*expected)->status());
    EXPECT_EQ((*video)->memory_bytes(), (*expected)->memory_bytes());
  }
}

TEST_F(WorkerDecoderTest, AVideoTellsWhyItEnded) {
  const std::string bytes = MakeVideo(3);
  const pid_t worker = (*pool_->Acquire())->pid();
  const auto video = workers_.OpenVideo(bytes, nullptr);
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_TRUE((*video)->Skip());
  EXPECT_TRUE((*video)->status().ok());
  kill(worker, SIGKILL);
  EXPECT_FALSE((*video)->Skip());
  EXPECT_EQ((*video)->status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*video)->Last().status().code(), absl::StatusCode::kInternal);
}

TEST_F(WorkerDecoderTest, WhatIsNotWantedIsNotDecoded) {
  const std::string bytes = Encode(".jpg", SmoothPicture(30, 20));
  const auto header = workers_.ReadHeader(File(bytes), nullptr);
  // A worker that does not go on.
  const pid_t worker = (*pool_->Acquire())->pid();
  kill(worker, SIGSTOP);
  const auto late = workers_.Decode(File(bytes), *header, Input(20), {},
                                    [] { return absl::CancelledError("the client has gone"); });
  EXPECT_EQ(late.status(), absl::CancelledError("the client has gone"));
  ExpectTheSame(bytes, 20);
  EXPECT_EQ(pool_->counts().started, 2);
}

TEST_F(WorkerDecoderTest, VolumesAreThoseOfThreads) {
  std::vector<cv::Mat> pages;
  for (int i = 0; i < 5; ++i) {
    cv::Mat page;
    cv::extractChannel(SmoothPicture(30, 20), page, i % 3);
    pages.push_back(page);
  }
  std::vector<unsigned char> encoded;
  ASSERT_TRUE(cv::imencode(".tiff", pages[0], encoded));
  const std::string one(encoded.begin(), encoded.end());
  const std::string path = ::testing::TempDir() + "worker_decoder_test_" + std::to_string(getpid()) + ".tiff";
  ASSERT_TRUE(cv::imwritemulti(path, pages));
  std::ifstream file(path, std::ios::binary);
  const std::string five((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::remove(path.c_str());
  for (const std::string& bytes : {one, five}) {
    const auto header = workers_.ReadVolume(File(bytes), 1 << 20, nullptr);
    ASSERT_TRUE(header.ok()) << header.status();
    std::vector<float> expected(header->voxels()), voxels(header->voxels());
    ASSERT_TRUE(threads_.DecodeVolume(File(bytes), *header, absl::MakeSpan(expected), nullptr).ok());
    const absl::Status decoded = workers_.DecodeVolume(File(bytes), *header, absl::MakeSpan(voxels), nullptr);
    ASSERT_TRUE(decoded.ok()) << decoded;
    EXPECT_EQ(voxels, expected);
  }
  EXPECT_EQ(workers_.ReadVolume(File(five), 1000, nullptr).status(),
            threads_.ReadVolume(File(five), 1000, nullptr).status());
}

// Large pictures are decoded although little shared memory is kept.
TEST_F(WorkerDecoderTest, LargePicturesGrowTheMemory) {
  const std::string large = Encode(".jpg", SmoothPicture(3000, 2000));
  const std::string small = Encode(".jpg", SmoothPicture(30, 20));
  for (int i = 0; i < 2; ++i) {
    ExpectTheSame(large, 1500);
    ExpectTheSame(small, 20);
  }
}

}  // namespace
}  // namespace saccade::server
