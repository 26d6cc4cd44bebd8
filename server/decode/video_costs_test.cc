// Videos that are made to take more memory or time than their size suggests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "server/decode/costs_fixtures.h"
#include "server/decode/video.h"
#include "server/decode/video_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

// Motion JPEG whose header gives `side` and whose frames are `frame`.
std::string Avi(int side, const std::string& frame, int frames) {
  return MotionJpegAvi({side, side}, std::vector<std::string>(static_cast<size_t>(frames), frame));
}

TEST(VideoCostsTest, VideosWhoseFramesAreLargerThanTheirHeader) {
  const std::string attack = Avi(64, LargeJpeg(11'000), 4);
  EXPECT_LT(attack.size(), 2'000'000u);
  const PeakMemory memory;
  auto video = Video::Open(attack, {});
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_EQ((*video)->size(), (models::Size{64, 64}));
  EXPECT_FALSE((*video)->Skip());
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
  const std::string honest = Avi(1024, LargeJpeg(1024), 4);
  video = Video::Open(honest, {});
  ASSERT_TRUE(video.ok()) << video.status();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE((*video)->Skip());
    EXPECT_EQ((*video)->Last()->pixels.data[0], 128);
  }
  EXPECT_FALSE((*video)->Skip());
}

TEST(VideoCostsTest, VideosHoldNoMoreFramesThanTheySay) {
  const std::string bytes = Avi(4096, LargeJpeg(4096), 6);
  const PeakMemory memory;
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  while ((*video)->Skip()) ASSERT_TRUE((*video)->Last().ok());
  EXPECT_LT(memory.growth(), (*video)->memory_bytes() + 3 * 4096 * 4096 + 16 * kMebibyte);
}

TEST(VideoCostsTest, VideosOfManyScans) {
  const std::string attack = Avi(8184, ManyScans(8184, 3000), 1);
  const double start = CpuSeconds();
  auto video = Video::Open(attack, {});
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_FALSE((*video)->Skip());
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(VideoCostsTest, VideosOfUnknownCodecs) {
  std::string other = Avi(64, LargeJpeg(64), 1);
  for (size_t at = other.find("MJPG"); at != other.npos; at = other.find("MJPG"))
    other.replace(at, 4, "cvid");
  EXPECT_THAT(std::string(Video::Open(other, {}).status().message()),
              HasSubstr("the video's codec is cinepak; accepted are H.264"));
}

std::string Box(const std::string& type, const std::string& data) {
  return Big(data.size() + 8, 4) + type + data;
}

// The tables of FFmpeg would be as long as the file claims: 24 bytes for each sample.
TEST(VideoCostsTest, VideosThatClaimManySamples) {
  const std::string start = Box("ftyp", "isom\0\0\0\0isom"s);
  const auto with_table = [&](const std::string& table) {
    return start + Box("moov", Box("trak", Box("mdia", Box("minf", Box("stbl", table)))));
  };
  const std::string flags(4, '\0');
  const auto refusal = [](const std::string& bytes) {
    const PeakMemory memory;
    const absl::Status refused = Video::Open(bytes, {}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(memory.growth(), 16 * kMebibyte);
    return std::string(refused.message());
  };
  EXPECT_THAT(refusal(with_table(Box("stsz", flags + Big(1, 4) + Big(170'000'000, 4)))),
              HasSubstr("its tables claim 170000000 samples"));
  EXPECT_THAT(refusal(start + Box("moof", Box("traf", Box("trun", flags + Big(170'000'000, 4))))),
              HasSubstr("its tables claim 170000000 samples"));
  for (const char* type : {"stco", "co64", "stsc", "stss", "stps", "stts", "ctts", "keys"}) {
    EXPECT_THAT(refusal(with_table(Box(type, flags + Big(170'000'000, 4)))),
                HasSubstr("its tables claim 170000000 entries"));
    // The file would hold the entries of one of the tables.
    std::string tables;
    for (int i = 0; i < 1000; ++i) tables += Box(type, flags + Big(4000, 4));
    EXPECT_THAT(refusal(with_table(tables)), HasSubstr(" entries or more, which a file of"));
  }
  EXPECT_THAT(refusal(start + Box("moov", Box("cmov", "x"))), HasSubstr("compressed (cmov)"));
  // FFmpeg reads a table whose box is longer than the file.
  EXPECT_THAT(refusal(with_table(Big(1 << 24, 4) + "stsz" + flags + Big(1, 4) + Big(170'000'000, 4))),
              HasSubstr("its tables claim 170000000 samples"));
  // The name of a table inside of the data is none.
  EXPECT_THAT(refusal(start + Box("mdat", Box("stsz", flags + Big(1, 4) + Big(170'000'000, 4)))),
              HasSubstr("cannot be decoded"));
}

}  // namespace
}  // namespace saccade::server
