// Videos that are made to take more memory or time than their size suggests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "server/decode/matroska_frames.h"
#include "server/decode/testing/costs_fixtures.h"
#include "server/decode/testing/video_fixtures.h"
#include "server/decode/video.h"

namespace saccade::server {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
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
  EXPECT_THAT(refusal(with_table("") + Box("stsz", flags + Big(0, 4) + Big(170'000'000, 4))),
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
  // Each edit would copy the index of all samples.
  const std::string samples = Box("stsz", flags + Big(1, 4) + Big(5000, 4));
  const std::string edits = Box("elst", flags + Big(100, 4) + std::string(1200, '\0'));
  const std::string data = Box("mdat", std::string(20'000, 'x'));
  EXPECT_THAT(refusal(with_table(samples + edits) + data),
              HasSubstr("its edit lists have 100 entries for 5000 samples"));
  // FFmpeg goes by the size of the box, whatever number it states.
  const std::string one_of_many = Box("elst", flags + Big(1, 4) + std::string(1200, '\0'));
  EXPECT_THAT(refusal(with_table(samples + one_of_many) + data),
              HasSubstr("its edit lists have 100 entries"));
  const std::string two_edits = Box("elst", flags + Big(2, 4) + std::string(24, '\0'));
  EXPECT_THAT(refusal(with_table(samples + two_edits) + data), Not(HasSubstr("edit lists")));
  // FFmpeg reads a table whose box is longer than the file.
  EXPECT_THAT(refusal(with_table(Big(1 << 24, 4) + "stsz" + flags + Big(1, 4) + Big(170'000'000, 4))),
              HasSubstr("its tables claim 170000000 samples"));
  // The name of a table inside of the data is none.
  EXPECT_THAT(refusal(start + Box("mdat", Box("stsz", flags + Big(1, 4) + Big(170'000'000, 4)))),
              HasSubstr("cannot be decoded"));
}

// FFmpeg compares the name of each text with those of all others.
TEST(VideoCostsTest, Mp4sOfManyTexts) {
  const std::string flags(4, '\0');
  const auto refusal = [&](const std::string& header) {
    const double start = CpuSeconds();
    const absl::Status refused =
        Video::Open(Box("ftyp", "isom\0\0\0\0isom"s) + Box("moov", header), {}).status();
    EXPECT_LT(CpuSeconds() - start, 0.2);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    return std::string(refused.message());
  };
  const std::string data = Box("data", Big(1, 4) + Big(0, 4) + "x");
  const auto with_keys = [&](uint64_t count) {
    std::string keys, values;
    for (uint64_t i = 1; i <= count; ++i) {
      keys += Box("mdta", "k" + std::to_string(i));
      values += Big(data.size() + 8, 4) + Big(i, 4) + data;
    }
    const std::string handler = Box("hdlr", flags + flags + "mdta" + std::string(13, '\0'));
    return Box("meta", handler + Box("keys", flags + Big(count, 4) + keys) + Box("ilst", values));
  };
  EXPECT_THAT(refusal(with_keys(100)), Not(HasSubstr("texts")));
  EXPECT_THAT(refusal(with_keys(2000)), HasSubstr("it has 1025 texts (udta, ilst) or more"));
  EXPECT_THAT(refusal(with_keys(100'000)),
              HasSubstr("bytes of names (keys, ----) or more; at most 1024 and"));
  // A name and a language are one key.
  std::string titles;
  for (uint64_t language = 0; language < 20'000; ++language)
    titles += Box("\251nam", Big(1, 2) + Big(language, 2) + "x");
  EXPECT_THAT(refusal(Box("udta", titles)), HasSubstr("it has 1025 texts"));
  const std::string name = Box("mean", flags + "m") + Box("name", flags + std::string(1000, 'n')) + data;
  std::string own;
  for (int i = 0; i < 200; ++i) own += Box("----", name);
  for (const std::string& parent : {Box("udta", Box("meta", flags + Box("ilst", own))), own})
    EXPECT_THAT(refusal(parent), HasSubstr("bytes of names"));
  // Each of these boxes would be gone through to the end of the file.
  std::string units;
  for (int i = 0; i < 65'536; ++i) units += Big(0, 4) + "----" + Big(16, 4) + "data";
  refusal(units);
  // Dashes in a text are no name.
  const std::string dashes = Box("\251cmt", Big(60'000, 2) + Big(0, 2) + std::string(200'000, '-'));
  EXPECT_THAT(refusal(Box("udta", dashes)), Not(HasSubstr("texts")));
  // Nor are words that begin like a table's type one.
  for (const std::string text : {"an elephant's trunk in slow motion", "the piano keys are black",
                                 "at Costco today, again", "a postscript to the film"}) {
    const std::string comment = Box("\251cmt", Big(text.size(), 2) + Big(0, 2) + text);
    EXPECT_THAT(refusal(Box("udta", comment) + Box("free", std::string(200'000, 'x'))),
                Not(AnyOf(HasSubstr("claim"), HasSubstr("texts"))));
  }
}

// A frame of VP8, which is what a lossy WebP holds; `is_shown` is a bit of it.
std::string Vp8(int side, bool is_shown) {
  const std::string webp =
      Encode(".webp", cv::Mat(side, side, CV_8UC3, cv::Scalar::all(9)), {cv::IMWRITE_WEBP_QUALITY, 1});
  std::string frame = webp.substr(webp.find("VP8 ") + 8);
  if (!is_shown) frame[0] = static_cast<char>(frame[0] & ~0x10);
  return frame;
}

std::string Vp8Avi(int side, const std::vector<std::string>& frames) {
  std::string avi = MotionJpegAvi({side, side}, frames);
  for (size_t at = avi.find("MJPG"); at != avi.npos; at = avi.find("MJPG")) avi.replace(at, 4, "VP80");
  return avi;
}

TEST(VideoCostsTest, FramesThatAreNotShownCount) {
  const std::string shown = Vp8(2048, true), hidden = Vp8(2048, false);
  const int64_t pixels = 2048 * 2048;
  const std::string bytes = Vp8Avi(2048, {shown, hidden, hidden, shown});
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  ASSERT_TRUE((*video)->Skip());
  EXPECT_EQ((*video)->decoded_pixels(), pixels);
  ASSERT_TRUE((*video)->Skip());
  EXPECT_EQ((*video)->decoded_pixels(), 4 * pixels);
  EXPECT_FALSE((*video)->Skip());
  EXPECT_TRUE((*video)->status().ok());
}

TEST(VideoCostsTest, VideosThatShowNothing) {
  const std::string frame = Vp8(4096, false);
  const std::string bytes = Vp8Avi(4096, std::vector<std::string>(1000, frame));
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_FALSE((*video)->Skip());
  EXPECT_EQ((*video)->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string((*video)->status().message()), HasSubstr("are not shown have more than 536870912"));
  EXPECT_LT((*video)->decoded_pixels(), int64_t{600} << 20);
}

TEST(VideoCostsTest, VideosEndWithTheirCall) {
  const std::string bytes = Vp8Avi(256, std::vector<std::string>(100, Vp8(256, false)));
  int asked = 0;
  auto video = Video::Open(bytes, {}, [&] {
    return ++asked == 50 ? absl::CancelledError("the client has left") : absl::OkStatus();
  });
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_FALSE((*video)->Skip());
  EXPECT_TRUE(absl::IsCancelled((*video)->status())) << (*video)->status();
  EXPECT_FALSE((*video)->Skip());
  EXPECT_EQ(asked, 50);
  EXPECT_LT((*video)->decoded_pixels(), 51 * 256 * 256);
}

// An element of Matroska, whose size is given in four bytes.
std::string Ebml(const std::string& id, const std::string& data) {
  return id + Big(0x10000000 | data.size(), 4) + data;
}

// A Matroska file of Motion JPEG, with more in its only track.
std::string Matroska(const std::string& in_track, const std::string& cluster) {
  const std::string header = Ebml("\x1A\x45\xDF\xA3", Ebml("\x42\x82", "matroska"));
  const std::string size = Ebml("\xB0", Big(64, 2)) + Ebml("\xBA", Big(64, 2));
  const std::string track = Ebml("\xD7", "\1") + Ebml("\x73\xC5", "\1") + Ebml("\x83", "\1") +
                            Ebml("\x86", "V_MJPEG") + Ebml("\x23\xE3\x83", Big(40'000'000, 4)) +
                            Ebml("\xE0", size) + in_track;
  return header + Ebml("\x18\x53\x80\x67", Ebml("\x16\x54\xAE\x6B", Ebml("\xAE", track)) +
                                               Ebml("\x1F\x43\xB6\x75", Ebml("\xE7", "\1"s) + cluster));
}

// A block at this time; `lacing` and what follows it as in its flags.
std::string Block(int time, const std::string& data, char flags = '\x80') {
  return Ebml("\xA3", "\x81" + Big(static_cast<uint64_t>(time), 2) + flags + data);
}

std::string Stripped(const std::string& settings) {
  const std::string compression = Ebml("\x42\x54", "\3") + Ebml("\x42\x55", settings);
  return Ebml("\x6D\x80", Ebml("\x62\x40", Ebml("\x50\x34", compression)));
}

int CountFrames(const std::string& bytes) {
  auto video = Video::Open(bytes, {});
  EXPECT_TRUE(video.ok()) << video.status();
  int frames = 0;
  while (video.ok() && (*video)->Skip()) ++frames;
  EXPECT_TRUE(!video.ok() || (*video)->status().ok()) << (*video)->status();
  return frames;
}

TEST(VideoCostsTest, MatroskaFilesAreRead) {
  const std::string jpeg = LargeJpeg(64);
  const std::string two = Block(0, jpeg) + Block(40, jpeg);
  EXPECT_EQ(CountFrames(Matroska("", two)), 2);
  // Two frames of one size in a block.
  EXPECT_EQ(CountFrames(Matroska("", Block(0, "\1" + jpeg + jpeg, '\x84'))), 2);
  std::string begin = jpeg.substr(0, 4), rest = jpeg.substr(4);
  EXPECT_EQ(CountFrames(Matroska(Stripped(begin), Block(0, rest) + Block(40, rest))), 2);
}

TEST(VideoCostsTest, MatroskaBlocksOfFramesWithoutBytes) {
  std::string blocks;
  for (int i = 0; i < 2000; ++i) blocks += Block(i, "\xFF", '\x84');
  const auto refusal = [](const std::string& bytes) {
    const double start = CpuSeconds();
    const PeakMemory memory;
    const absl::Status refused = Video::Open(bytes, {}).status();
    EXPECT_LT(CpuSeconds() - start, 0.05);
    EXPECT_LT(memory.growth(), 16 * kMebibyte);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    return std::string(refused.message());
  };
  EXPECT_THAT(refusal(Matroska("", blocks)), HasSubstr("its blocks have 10240 frames or more; at most 10"));
  // Each frame would have a mebibyte more than the block.
  EXPECT_THAT(refusal(Matroska(Stripped(std::string(1 << 20, 'x')), Block(0, "\xFF", '\x84'))),
              HasSubstr("1048576 bytes are left out of each of its frames; at most 64"));
  const std::string zlib = Ebml("\x6D\x80", Ebml("\x62\x40", Ebml("\x50\x34", "")));
  EXPECT_THAT(refusal(Matroska(zlib, Block(0, Deflated(LargeJpeg(64))))), HasSubstr("(ContentCompression)"));
}

// FFmpeg compares each text with all others.
TEST(VideoCostsTest, VideosOfManyTexts) {
  std::string texts;
  for (int i = 0; i < 100'000; ++i)
    texts += Big(static_cast<uint32_t>(i) | 0x41410000u, 4) + std::string(4, '\0');
  std::string avi = Avi(64, LargeJpeg(64), 2);
  ASSERT_TRUE(Video::Open(avi, {}).ok());
  avi.insert(12, "LIST" + Little(static_cast<uint32_t>(texts.size() + 4), 4) + "INFO" + texts);
  const double start = CpuSeconds();
  EXPECT_THAT(std::string(Video::Open(avi, {}).status().message()),
              HasSubstr("its texts (INFO) have 800004 bytes"));
  const std::string tags = Ebml("\x12\x54\xC3\x67", std::string(200'000, '\0'));
  EXPECT_THAT(std::string(Video::Open(Matroska("", tags + Block(0, LargeJpeg(64))), {}).status().message()),
              HasSubstr("its cues, tags or chapters have 200000 bytes"));
  EXPECT_LT(CpuSeconds() - start, 0.2);
}

// FFmpeg would make room for the name of a stream before it reads it.
TEST(VideoCostsTest, AvisWhoseHeadersAreLongerThanTheFile) {
  for (const char* chunk : {"strn", "strf", "strd"}) {
    std::string avi = Avi(64, LargeJpeg(64), 2);
    const size_t frames = avi.find("LIST", avi.find("strl"));
    avi.insert(frames, chunk + Little(400'000'000, 4));
    const PeakMemory memory;
    EXPECT_THAT(std::string(Video::Open(avi, {}).status().message()),
                HasSubstr(std::string(chunk) + ") claims 400000000 bytes, which a file of"));
    EXPECT_LT(memory.growth(), 16 * kMebibyte);
  }
  // The letters that begin the frames, in a chunk that FFmpeg passes over.
  std::string avi = Avi(64, LargeJpeg(64), 2);
  avi.insert(avi.find("LIST", avi.find("strl")),
             "JUNK" + Little(12, 4) + "LIST" + Little(4, 4) + "movi" + "strn" + Little(400'000'000, 4));
  EXPECT_THAT(std::string(Video::Open(avi, {}).status().message()),
              HasSubstr("strn) claims 400000000 bytes"));
  std::string in_a_frame = LargeJpeg(64);
  in_a_frame.append("strn\xFF\xFF\xFF\x7F");
  EXPECT_TRUE(Video::Open(Avi(64, in_a_frame, 2), {}).ok());
}

// What the reader of elements passes over, FFmpeg may still find: it looks for tracks behind an element whose
// size is unknown. Such frames are counted as they are read.
TEST(VideoCostsTest, MatroskaFramesThatAreFoundLater) {
  std::string jpeg = LargeJpeg(64);
  jpeg.insert(2, "\xFF\xFE" + Big(20'002, 2) + std::string(20'000, 'x'));
  const std::string begin = jpeg.substr(0, jpeg.size() - 20);
  std::string frames;
  for (int i = 0; i < 256; ++i) frames += jpeg.substr(begin.size());
  std::string bytes = Matroska(Stripped(begin), Block(0, "\xFF" + frames, '\x84'));
  bytes.insert(bytes.find("\x16\x54\xAE\x6B"), "\xEC\xFF");
  const PeakMemory memory;
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  while ((*video)->Skip()) {
  }
  EXPECT_THAT(std::string((*video)->status().message()), HasSubstr("of its frames and pieces of sound have"));
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
}

}  // namespace
}  // namespace saccade::server
