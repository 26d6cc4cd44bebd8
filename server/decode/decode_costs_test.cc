// Files that are made to take more memory or time than their size suggests, and files like them that people
// send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <zlib.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/decode/picture_fixtures.h"
#include "server/decode/prepare.h"
#include "server/decode/video.h"
#include "server/decode/video_fixtures.h"
#include "server/decode/volume.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

constexpr int64_t kMebibyte = 1 << 20;

// Bytes by which the process's peak of resident memory, counted from now, exceeds what it holds now.
class PeakMemory {
 public:
  PeakMemory() {
    // Freed memory goes back to the system, so that what is taken again counts.
    mallopt(M_MMAP_THRESHOLD, 1 << 17);
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
    before_ = Status("VmRSS:");
  }
  int64_t growth() const { return Status("VmHWM:") - before_; }

 private:
  static int64_t Status(const std::string& wanted) {
    std::ifstream status("/proc/self/status");
    std::string name;
    for (int64_t kibibytes = 0; status >> name; status.ignore(1000, '\n')) {
      if (name == wanted && status >> kibibytes) return 1024 * kibibytes;
    }
    return -1;
  }

  int64_t before_ = 0;
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string Big(uint64_t value, int bytes) {
  const std::string text = Little(value, bytes);
  return {text.rbegin(), text.rend()};
}

Picture File(const std::string& bytes) { return EncodedPicture{.data = {.owner = nullptr, .bytes = bytes}}; }

// The upright picture as the network's input is made from; empty, with the error in `refusal`, if it is
// refused.
cv::Mat Decoded(const std::string& bytes, std::string* refusal = nullptr) {
  const Picture picture = File(bytes);
  models::ImageInput input;
  input.antialias = false;
  const auto header = ReadHeader(picture, {});
  const auto decoded = header.ok() ? DecodePicture(picture, *header, input) : header.status();
  if (!decoded.ok()) {
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << decoded.status();
    if (refusal != nullptr) *refusal = std::string(decoded.status().message());
    return {};
  }
  const SourcePixels& pixels = decoded->pixels;
  return cv::Mat(static_cast<int>(pixels.height), static_cast<int>(pixels.width), CV_8UC3,
                 const_cast<uint8_t*>(pixels.data), pixels.row_bytes)
      .clone();
}

std::string Refusal(const std::string& bytes) {
  std::string refusal;
  EXPECT_TRUE(Decoded(bytes, &refusal).empty()) << "it is accepted";
  return refusal;
}

cv::Mat DecodedByOpenCv(const std::string& bytes) {
  return cv::imdecode(std::vector<uint8_t>(bytes.begin(), bytes.end()), cv::IMREAD_COLOR);
}

bool Same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && !a.empty() && cv::norm(a, b, cv::NORM_INF) == 0;
}

// JPEG

// A progressive grey JPEG. After the first scan each takes 15 bits for every 32,767 blocks, which it skips.
std::string ManyScans(int side, int scans) {
  const auto segment = [](char marker, const std::string& data) {
    return "\xFF"s + marker + Big(data.size() + 2, 2) + data;
  };
  // One symbol with the code 0.
  const auto table = [](char kind, char symbol) { return kind + "\x01"s + std::string(15, '\0') + symbol; };
  const int64_t blocks = int64_t{(side + 7) / 8} * ((side + 7) / 8);
  std::string jpeg = "\xFF\xD8"s +
                     segment('\xC2', "\x08"s + Big(side, 2) + Big(side, 2) + "\x01\x01\x11\0"s) +
                     segment('\xDB', "\0"s + std::string(64, '\1')) + segment('\xC4', table('\0', '\0')) +
                     segment('\xC4', table('\x10', '\xE0')) + segment('\xDA', "\x01\x01\0\0\0\0"s) +
                     std::string(blocks / 8 + 1, '\0');
  // The code 0 and 14 bits of 1, as often as needed; a byte of ones is followed by a zero.
  std::string skip;
  uint64_t bits = 0;
  int held = 0;
  for (int64_t skipped = 0; skipped < blocks; skipped += 32767) {
    bits = bits << 15 | 0x3FFF;
    for (held += 15; held >= 8; held -= 8) {
      skip += static_cast<char>(bits >> (held - 8));
      if (skip.back() == '\xFF') skip += '\0';
    }
  }
  skip += static_cast<char>(bits << (8 - held));
  const std::string scan = segment('\xDA', "\x01\x01\0\x01\x3F\0"s) + skip;
  for (int i = 1; i < scans; ++i) jpeg += scan;
  return jpeg + "\xFF\xD9";
}

TEST(DecodeCostsTest, JpegsOfManyScans) {
  const std::string attack = ManyScans(8184, 3000);
  EXPECT_LT(attack.size(), 600'000u);
  const double start = CpuSeconds();
  EXPECT_THAT(Refusal(attack), HasSubstr("more than 16 scans; a picture of 8184 x 8184 pixels"));
  EXPECT_LT(CpuSeconds() - start, 0.1);
  EXPECT_THAT(Refusal(ManyScans(8, 501)), HasSubstr("more than 500 scans"));
  EXPECT_THAT(Refusal(ManyScans(4096, 65)), HasSubstr("more than 64 scans"));
}

// As much work as is accepted.
TEST(DecodeCostsTest, JpegsOfAsManyScansAsMayBe) {
  const std::string jpeg = ManyScans(4096, 64);
  const double start = CpuSeconds();
  EXPECT_EQ(Decoded(jpeg).size(), cv::Size(4096, 4096));
  const double seconds = CpuSeconds() - start;
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 5);
}

// Decoding one picture on a thread of the daemon is not interrupted, so that this bounds how long a thread
// may be busy after its call has ended. Noise is what takes longest for each pixel.
TEST(DecodeCostsTest, APictureTakesHalfASecondForEachMegapixelAtMost) {
  cv::Mat noise(1024, 1024, CV_8UC3);
  cv::randu(noise, 0, 256);
  const std::pair<const char*, std::vector<int>> formats[] = {
      {".jpg", {cv::IMWRITE_JPEG_QUALITY, 100}},
      {".jpg", {cv::IMWRITE_JPEG_QUALITY, 100, cv::IMWRITE_JPEG_PROGRESSIVE, 1}},
      {".png", {cv::IMWRITE_PNG_COMPRESSION, 9}},
      {".webp", {cv::IMWRITE_WEBP_QUALITY, 100}},
      {".webp", {cv::IMWRITE_WEBP_QUALITY, 101}},
      {".tiff", {cv::IMWRITE_TIFF_COMPRESSION, 5}},
      {".bmp", {}},
  };
  for (const auto& [format, options] : formats) {
    const std::string encoded = Encode(format, noise, options);
    const double start = CpuSeconds();
    ASSERT_EQ(Decoded(encoded).size(), noise.size()) << format;
    EXPECT_LT(CpuSeconds() - start, 0.5) << format;
  }
}

TEST(DecodeCostsTest, ProgressiveJpegsAreRead) {
  const std::string usual = Encode(".jpg", SmoothPicture(640, 427),
                                   {cv::IMWRITE_JPEG_PROGRESSIVE, 1, cv::IMWRITE_JPEG_QUALITY, 90});
  EXPECT_TRUE(Same(Decoded(usual), DecodedByOpenCv(usual)));
  const std::string searched = ManyScans(256, 100);
  EXPECT_TRUE(Same(Decoded(searched), DecodedByOpenCv(searched)));
}

// EXIF data whose entries are texts that claim all of it.
std::string GreedyExif(size_t size) {
  const size_t entries = std::min<size_t>(60'000, (size - 8 - 6) / 12);
  std::string exif = "II*\0\x08\0\0\0"s + Little(entries, 2);
  for (size_t i = 0; i < entries; ++i)
    exif += Little(0x010E, 2) + Little(2, 2) + Little(size - 8, 4) + Little(8, 4);
  exif.resize(size, 'x');
  return exif;
}

TEST(DecodeCostsTest, PicturesWithAsMuchExifAsMayBe) {
  const cv::Mat pixel = SmoothPicture(1, 1);
  const std::string jpeg = WithSegment(Encode(".jpg", pixel), '\xE1', "Exif\0\0"s + GreedyExif(65'533 - 6));
  const double start = CpuSeconds();
  EXPECT_EQ(Decoded(jpeg).size(), cv::Size(1, 1));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

// PNG

std::string Chunk(const std::string& type, const std::string& data) {
  const std::string checked = type + data;
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return Big(data.size(), 4) + checked + Big(sum, 4);
}

std::string Deflated(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string out(size, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
            data.size(), 9);
  return out.substr(0, size);
}

// Inserts chunks after the header.
std::string WithChunks(const std::string& png, const std::string& chunks) {
  return png.substr(0, 33) + chunks + png.substr(33);
}

TEST(DecodeCostsTest, PngsWhoseTextsInflate) {
  const std::string small = Encode(".png", SmoothPicture(1, 1));
  const std::string zeros = Deflated(std::string(7'900'000, 'x'));
  const std::string text = Chunk("zTXt", "a\0\0"s + zeros);
  const std::string international = Chunk("iTXt", "a\0\1\0\0\0"s + zeros);
  std::string chunks;
  for (int i = 0; i < 50; ++i) chunks += text + international;
  const std::string attack = WithChunks(small, chunks);
  EXPECT_LT(attack.size(), 800'000u);
  const PeakMemory checked;
  const double start = CpuSeconds();
  EXPECT_TRUE(Same(Decoded(attack), DecodedByOpenCv(small)));
  EXPECT_LT(checked.growth(), 16 * kMebibyte);
  EXPECT_LT(CpuSeconds() - start, 0.5);
  const PeakMemory unchecked;
  DecodedByOpenCv(attack);
  EXPECT_GT(unchecked.growth(), 400 * kMebibyte) << "this test tests nothing";
}

TEST(DecodeCostsTest, PngsWithLargeExif) {
  const std::string exif = GreedyExif(4'100'000);
  const std::string small = Encode(".png", SmoothPicture(1, 1));
  const double start = CpuSeconds();
  EXPECT_TRUE(Same(Decoded(WithChunks(small, Chunk("eXIf", exif))), DecodedByOpenCv(small)));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(DecodeCostsTest, PngsWithTextsAndProfilesAreRead) {
  const cv::Mat bgr = SmoothPicture(61, 37);
  const std::string orientation = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
  const std::string profile = Chunk("iCCP", "profile\0\0"s + Deflated(std::string(560, 'p')));
  const std::string texts = Chunk("tEXt", "Software\0a program"s) +
                            Chunk("iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + std::string(5000, 'x')) +
                            Chunk("pHYs", Big(2835, 4) + Big(2835, 4) + "\x01");
  cv::Mat palette_like(37, 61, CV_8UC1, cv::Scalar(7));
  cv::Mat deep;
  bgr.convertTo(deep, CV_16UC3, 257);
  for (const cv::Mat& picture : {bgr, palette_like, deep}) {
    const std::string plain = Encode(".png", picture);
    for (const std::string& chunks :
         {texts, profile + texts, Chunk("pHYs", Big(1, 4) + Big(1, 4) + "\x01")}) {
      EXPECT_TRUE(Same(Decoded(WithChunks(plain, chunks)), DecodedByOpenCv(plain)));
      const std::string turned = WithChunks(plain, chunks + Chunk("eXIf", orientation));
      EXPECT_TRUE(Same(Decoded(turned), DecodedByOpenCv(turned)));
    }
  }
}

// WebP

// Writes bits, the lowest of each byte first.
class BitWriter {
 public:
  void Put(uint32_t value, int count) {
    for (int i = 0; i < count; ++i) {
      if (bits_++ % 8 == 0) bytes_ += '\0';
      bytes_.back() = static_cast<char>(bytes_.back() | (value >> i & 1) << ((bits_ - 1) % 8));
    }
  }
  // A code of the symbol 0 alone, which takes no bits.
  void PutSingle() { Put(1, 4); }
  // A code of the first 256 symbols of `alphabet`, 8 bits each.
  void PutFlat(int alphabet) {
    // Lengths are 8, written as 0, or a run of zeros, written as 1. They are the eleventh and second of
    // twelve.
    Put(0, 1);
    Put(12 - 4, 4);
    for (int i = 0; i < 12; ++i) Put(i == 1 || i == 11 ? 1 : 0, 3);
    Put(0, 1);
    for (int i = 0; i < 256; ++i) Put(0, 1);
    if (alphabet == 256) return;
    Put(1, 1);
    Put(alphabet - 256 - 11, 7);
  }
  std::string bytes() const { return bytes_ + std::string(bytes_.size() % 2, '\0'); }

 private:
  std::string bytes_;
  int64_t bits_ = 0;
};

uint32_t Reversed8(uint32_t value) {
  uint32_t reversed = 0;
  for (int i = 0; i < 8; ++i) reversed |= (value >> i & 1) << (7 - i);
  return reversed;
}

// The lossless data of a black picture whose blocks of 4 x 4 pixels all have codes of their own.
std::string ManyBlocks(int side) {
  BitWriter bits;
  bits.Put(0, 2);  // no transform, no colour cache
  bits.Put(1, 1);  // blocks
  bits.Put(0, 3);  // of 4 x 4 pixels
  bits.Put(0, 1);  // no colour cache
  bits.PutFlat(256 + 24);
  bits.PutFlat(256);
  for (int i = 0; i < 3; ++i) bits.PutSingle();
  const uint32_t blocks = side / 4 * (side / 4);
  for (uint32_t block = 0; block < blocks; ++block)
    bits.Put(Reversed8(block & 0xFF) | Reversed8(block >> 8) << 8, 16);
  for (uint32_t code = 0; code < 5 * blocks; ++code) bits.PutSingle();
  return bits.bytes();
}

std::string Lossless(int side, const std::string& data) {
  const uint32_t size = static_cast<uint32_t>(side - 1) | static_cast<uint32_t>(side - 1) << 14;
  const std::string chunk = "\x2F" + Little(size, 4) + data;
  return "RIFF" + Little(chunk.size() + 12, 4) + "WEBPVP8L" + Little(chunk.size(), 4) + chunk +
         std::string(chunk.size() % 2, '\0');
}

TEST(DecodeCostsTest, WebpsOfManyCodes) {
  const std::string attack = Lossless(1024, ManyBlocks(1024));
  EXPECT_LT(attack.size(), 300'000u);
  const PeakMemory checked;
  EXPECT_THAT(Refusal(attack), HasSubstr("divided into 65536 blocks; at most 4096"));
  EXPECT_LT(checked.growth(), 16 * kMebibyte);
  const PeakMemory unchecked;
  EXPECT_EQ(DecodedByOpenCv(attack).size(), cv::Size(1024, 1024));
  EXPECT_GT(unchecked.growth(), 300 * kMebibyte) << "this test tests nothing";
}

TEST(DecodeCostsTest, WebpsOfAsManyCodesAsMayBe) {
  const std::string webp = Lossless(256, ManyBlocks(256));
  const PeakMemory memory;
  EXPECT_EQ(Decoded(webp).size(), cv::Size(256, 256));
  EXPECT_LT(memory.growth(), 64 * kMebibyte);
}

TEST(DecodeCostsTest, TransparencyOfManyCodes) {
  const std::string lossy = Encode(".webp", SmoothPicture(1024, 1024), {cv::IMWRITE_WEBP_QUALITY, 50});
  const auto with_alpha = [&](const std::string& alpha) {
    const std::string chunks = "VP8X"s + Little(10, 4) + Little(0x10, 4) + Little(1023, 3) + Little(1023, 3) +
                               alpha + lossy.substr(12);
    return "RIFF" + Little(chunks.size() + 4, 4) + "WEBP" + chunks;
  };
  const auto chunk = [](const std::string& data) {
    return "ALPH" + Little(data.size(), 4) + data + std::string(data.size() % 2, '\0');
  };
  EXPECT_THAT(Refusal(with_alpha(chunk("\1" + ManyBlocks(1024)))), HasSubstr("divided into 65536 blocks"));
  const std::string raw = chunk("\0"s + std::string(1024 * 1024, 'x'));
  EXPECT_THAT(Refusal(with_alpha(raw + raw)), HasSubstr("two chunks of transparency"));
  EXPECT_FALSE(Decoded(with_alpha(raw)).empty());
}

TEST(DecodeCostsTest, LosslessWebpsAreRead) {
  cv::Mat noisy = SmoothPicture(700, 500);
  std::mt19937 random(3);
  for (int i = 0; i < noisy.rows * noisy.cols * 3; ++i) noisy.data[i] += static_cast<uint8_t>(random() % 9);
  cv::Mat few_colours = SmoothPicture(300, 200);
  for (int i = 0; i < few_colours.rows * few_colours.cols * 3; ++i) few_colours.data[i] &= 0xC0;
  cv::Mat transparent(200, 300, CV_8UC4);
  for (int i = 0; i < 200 * 300 * 4; ++i) transparent.data[i] = static_cast<uint8_t>(i % 7 * 30 + i / 4000);
  const cv::Mat plain(64, 64, CV_8UC3, cv::Scalar(1, 2, 3));
  for (const cv::Mat& picture :
       {noisy, few_colours, transparent, plain, SmoothPicture(1, 1), SmoothPicture(2000, 3)}) {
    for (const int quality : {101, 80}) {
      const std::string webp = Encode(".webp", picture, {cv::IMWRITE_WEBP_QUALITY, quality});
      EXPECT_TRUE(Same(Decoded(webp), DecodedByOpenCv(webp))) << picture.size() << " " << quality;
    }
  }
}

// TIFF

struct Tag {
  int number;
  int type;
  uint64_t count;
  // The value, or where it is, counted from the end of the directories.
  uint64_t value;
  bool elsewhere = false;
};

enum TagType { kByte = 1, kShort = 3, kLong = 4 };

// Little-endian TIFF of pages with the same tags, in the order given, and `data` behind them.
std::string TiffOf(const std::vector<Tag>& tags, const std::string& data, int pages = 1) {
  const size_t directory = 2 + 12 * tags.size() + 4;
  const size_t end = 8 + pages * directory;
  std::string tiff = "II*\0"s + Little(8, 4);
  for (int page = 0; page < pages; ++page) {
    tiff += Little(tags.size(), 2);
    for (const Tag& tag : tags) {
      const uint64_t value = tag.elsewhere ? end + tag.value : tag.value;
      tiff += Little(tag.number, 2) + Little(tag.type, 2) + Little(tag.count, 4) + Little(value, 4);
    }
    tiff += Little(page + 1 == pages ? 0 : 8 + (page + 1) * directory, 4);
  }
  return tiff + data;
}

// A grey picture of one pixel, which is the first byte of the data.
std::vector<Tag> OnePixel(int compression = 1) {
  return {{256, kShort, 1, 1}, {257, kShort, 1, 1},
          {258, kShort, 1, 8}, {259, kShort, 1, uint64_t(compression)},
          {262, kShort, 1, 1}, {273, kLong, 1, 0, true},
          {277, kShort, 1, 1}, {278, kShort, 1, 1},
          {279, kLong, 1, 1}};
}

std::vector<Tag> And(std::vector<Tag> tags, const std::vector<Tag>& more) {
  tags.insert(tags.end(), more.begin(), more.end());
  return tags;
}

std::vector<Tag> Blobs(int tags, uint64_t size) {
  std::vector<Tag> blobs;
  for (int i = 0; i < tags; ++i) blobs.push_back({40'000 + i, kByte, size, 1, true});
  return blobs;
}

TEST(DecodeCostsTest, TiffsWhoseTagsShareABlob) {
  const std::string blob(kMebibyte, 'x');
  const std::string many = TiffOf(And(OnePixel(), Blobs(4000, kMebibyte)), "p" + blob);
  EXPECT_LT(many.size(), 1'200'000u);
  const PeakMemory memory;
  EXPECT_THAT(Refusal(many), HasSubstr("page 0 has 4009 tags; at most 256 are accepted"));
  EXPECT_THAT(Refusal(TiffOf(And(OnePixel(), Blobs(200, kMebibyte)), "p" + blob)),
              HasSubstr("the tags of page 0 hold 209715200 bytes; at most 8388608 bytes"));
  EXPECT_THAT(Refusal(TiffOf(And(OnePixel(), Blobs(4, kMebibyte)), "p" + blob)),
              HasSubstr("tags must not share their data"));
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
}

// As many bytes as are accepted, of a type that libtiff widens to eight times as many: SMinSampleValue.
TEST(DecodeCostsTest, TiffsOfAsManyTagBytesAsMayBe) {
  const std::string blob(8 * kMebibyte - 100, 'x');
  for (const int tag : {34'675, 40'000, 340, 51'000}) {
    const std::string tiff = TiffOf(And(OnePixel(), {{tag, kByte, blob.size(), 1, true}}), "p" + blob);
    const PeakMemory memory;
    Decoded(tiff);
    EXPECT_LT(memory.growth(), 160 * kMebibyte) << tag;
  }
}

TEST(DecodeCostsTest, TiffPagesThatShareTags) {
  const std::string blob(kMebibyte, 'x');
  const auto attack = TiffOf(And(OnePixel(), Blobs(4, kMebibyte / 4)), "p" + blob, 3000);
  const double start = CpuSeconds();
  const auto refused = ReadVolumeHeader(File(attack), kMebibyte);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("tags must not share their data"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
  EXPECT_EQ(ReadVolumeHeader(File(TiffOf(OnePixel(), "p", 3000)), kMebibyte)->depth, 3000);
}

// libtiff sorts its list of tags for each tag that is new to it.
TEST(DecodeCostsTest, TiffPagesOfEverNewTags) {
  std::string tiff = "II*\0"s + Little(8, 4);
  constexpr int kPages = 200;
  for (int page = 0; page < kPages; ++page) {
    std::vector<Tag> tags = OnePixel();
    for (int i = 0; i < 240; ++i) tags.push_back({5000 + 240 * page + i, kLong, 1, 0});
    tiff += Little(tags.size(), 2);
    for (const Tag& tag : tags)
      tiff += Little(tag.number, 2) + Little(tag.type, 2) + Little(tag.count, 4) + Little(tag.value, 4);
    tiff += Little(page + 1 == kPages ? 0 : tiff.size() + 4, 4);
  }
  const double start = CpuSeconds();
  EXPECT_THAT(std::string(ReadVolumeHeader(File(tiff), kMebibyte).status().message()),
              HasSubstr("different tags; at most 512 are accepted"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(DecodeCostsTest, TiffPagesThatOverlap) {
  std::string loop = TiffOf(OnePixel(), "p");
  loop.replace(8 + 2 + 12 * OnePixel().size(), 4, Little(8, 4));
  const auto refused = ReadVolumeHeader(File(loop), kMebibyte);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("its pages overlap"));
}

TEST(DecodeCostsTest, TiffsOfHugeTilesAndUnknownCompressions) {
  std::vector<Tag> tiled = {{256, kShort, 1, 1}, {257, kShort, 1, 1}, {258, kShort, 1, 8},
                            {259, kShort, 1, 8}, {262, kShort, 1, 1}, {277, kShort, 1, 1},
                            {322, kLong, 1, 0},  {323, kLong, 1, 0},  {324, kLong, 1, 0, true}};
  const auto with_tiles = [&](uint64_t side, const std::string& data, uint64_t shown = 1) {
    std::vector<Tag> tags = tiled;
    tags[0].value = tags[1].value = shown;
    tags[6].value = tags[7].value = side;
    tags.push_back({325, kLong, 1, data.size()});
    return TiffOf(tags, data);
  };
  const std::string tile = Deflated(std::string(8192 * 8192, 'x'));
  const PeakMemory memory;
  EXPECT_THAT(Refusal(with_tiles(8192, tile)),
              HasSubstr("tiles are 8192 x 8192 pixels large; at most 1048576"));
  EXPECT_LT(memory.growth(), 16 * kMebibyte);
  const cv::Mat small = Decoded(with_tiles(256, Deflated(std::string(256 * 256, 'x'))));
  EXPECT_TRUE(Same(small, cv::Mat(1, 1, CV_8UC3, cv::Scalar::all('x'))));
  constexpr int kLzma = 34'925;
  EXPECT_THAT(Refusal(TiffOf(OnePixel(kLzma), "p")),
              HasSubstr("its compression is number 34925; accepted are none"));
}

// A strip of one pixel, of `size` bytes: blocks without data come first.
std::string SlowStrip(size_t size) {
  std::string strip = "\x78\x01";
  while (strip.size() < size) strip += "\0\0\0\xFF\xFF"s;
  // The pixel, and the sum of the data.
  return strip + "\1\1\0\xFE\xFFp\0\x71\0\x71"s;
}

// Every strip or page is decoded from the same slow bytes.
TEST(DecodeCostsTest, TiffsWhoseStripsShareData) {
  constexpr int kStrips = 20'000;
  // libtiff reads only the beginning of strips that are larger than a mebibyte without need.
  const std::string strip = SlowStrip(1'000'000);
  const auto tall = [&](uint64_t strips) {
    std::string offsets, counts;
    std::vector<Tag> tags = OnePixel(/*compression=*/8);
    const uint64_t tables = 4 * strips;
    const uint64_t end = 8 + 2 + 12 * tags.size() + 4;
    for (uint64_t i = 0; i < strips; ++i) {
      offsets += Little(end + 2 * tables, 4);
      counts += Little(strip.size(), 4);
    }
    tags[1] = {257, kLong, 1, strips};
    tags[5] = {273, kLong, strips, 0, true};
    tags[8] = {279, kLong, strips, tables, true};
    return TiffOf(tags, offsets + counts + strip);
  };
  double start = CpuSeconds();
  const std::string attack = tall(kStrips);
  EXPECT_LT(attack.size(), 1'300'000u);
  EXPECT_THAT(Refusal(attack), HasSubstr("they must not share their data"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
  start = CpuSeconds();
  EXPECT_TRUE(Same(Decoded(tall(3)), cv::Mat(3, 1, CV_8UC3, cv::Scalar::all('p'))));
  const double seconds_of_a_strip = (CpuSeconds() - start) / 3;
  EXPECT_GT(kStrips * seconds_of_a_strip, 5) << "this test tests nothing";

  std::vector<Tag> page = OnePixel(/*compression=*/8);
  page[8].value = strip.size();
  EXPECT_EQ(ReadVolumeHeader(File(TiffOf(page, strip, 3)), kMebibyte)->depth, 3);
  start = CpuSeconds();
  const auto refused = ReadVolumeHeader(File(TiffOf(page, strip, 3000)), kMebibyte);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("they must not share their data"));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(DecodeCostsTest, TiffsOfManySamples) {
  std::vector<Tag> tags = OnePixel();
  tags[6].value = 9;
  tags.push_back({338, kShort, 1, 0});
  EXPECT_THAT(Refusal(TiffOf(tags, "pppppppppp")), HasSubstr("samples for each pixel; at most 8"));
}

// A colour profile, texts and a camera's private data, none of which share bytes.
TEST(DecodeCostsTest, TiffsWithProfilesAndTextsAreRead) {
  constexpr uint64_t kSize = 500'000;
  const std::vector<Tag> metadata = {{270, 2, kSize, 1, true},
                                     {700, kByte, kSize, 1 + kSize, true},
                                     {34'377, kByte, kSize, 1 + 2 * kSize, true},
                                     {34'675, 7, kSize, 1 + 3 * kSize, true},
                                     {50'839, kByte, kSize, 1 + 4 * kSize, true}};
  const std::string tiff = TiffOf(And(OnePixel(), metadata), "p" + std::string(5 * kSize, 'm'));
  EXPECT_TRUE(Same(Decoded(tiff), cv::Mat(1, 1, CV_8UC3, cv::Scalar::all('p'))));
  EXPECT_EQ(ReadVolumeHeader(File(tiff), kMebibyte)->voxels(), 1);
}

// All formats

// The most for each pixel are four samples of two bytes and the three bytes of the decoded picture, or of a
// transparent WebP two copies of four bytes and those three.
TEST(DecodeCostsTest, DecodingTakesAFewBytesForEachPixel) {
  constexpr int kSide = 1024;
  const cv::Mat bgr = SmoothPicture(kSide, kSide);
  cv::Mat transparent;
  cv::cvtColor(bgr, transparent, cv::COLOR_BGR2BGRA);
  transparent.at<cv::Vec4b>(0, 0)[3] = 0;
  cv::Mat deep;
  bgr.convertTo(deep, CV_16UC3, 257);
  const std::pair<const char*, std::string> pictures[] = {
      {"baseline JPEG", Encode(".jpg", bgr)},
      {"progressive JPEG", Encode(".jpg", bgr, {cv::IMWRITE_JPEG_PROGRESSIVE, 1})},
      {"PNG", Encode(".png", bgr)},
      {"deep PNG", Encode(".png", deep)},
      {"lossy WebP", Encode(".webp", bgr, {cv::IMWRITE_WEBP_QUALITY, 80})},
      {"lossless WebP", Encode(".webp", bgr, {cv::IMWRITE_WEBP_QUALITY, 101})},
      {"transparent WebP", Encode(".webp", transparent, {cv::IMWRITE_WEBP_QUALITY, 101})},
      {"TIFF", Encode(".tiff", bgr)},
      {"deep TIFF", Encode(".tiff", deep)},
      {"BMP", Encode(".bmp", bgr)}};
  for (const auto& [name, bytes] : pictures) {
    const Picture picture = File(bytes);
    const auto header = ReadHeader(picture, {});
    ASSERT_TRUE(header.ok()) << header.status();
    models::ImageInput input;
    input.antialias = false;
    const PeakMemory memory;
    const auto decoded = DecodePicture(picture, *header, input);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    const double per_pixel = static_cast<double>(memory.growth()) / (kSide * kSide);
    EXPECT_LT(per_pixel, 14) << name;
  }
}

// Videos

// Motion JPEG whose header gives `side` and whose frames are `frame`.
std::string Avi(int side, const std::string& frame, int frames) {
  return MotionJpegAvi({side, side}, std::vector<std::string>(static_cast<size_t>(frames), frame));
}

// A grey baseline JPEG of two bits for each block.
std::string LargeJpeg(int side) {
  const auto segment = [](char marker, const std::string& data) {
    return "\xFF"s + marker + Big(data.size() + 2, 2) + data;
  };
  const auto table = [](char kind) { return kind + "\x01"s + std::string(16, '\0'); };
  const int64_t blocks = int64_t{(side + 7) / 8} * ((side + 7) / 8);
  return "\xFF\xD8"s + segment('\xDB', "\0"s + std::string(64, '\1')) +
         segment('\xC0', "\x08"s + Big(side, 2) + Big(side, 2) + "\x01\x01\x11\0"s) +
         segment('\xC4', table('\0')) + segment('\xC4', table('\x10')) +
         segment('\xDA', "\x01\x01\0\0\x3F\0"s) + std::string(blocks / 4 + 1, '\0') + "\xFF\xD9";
}

TEST(DecodeCostsTest, VideosWhoseFramesAreLargerThanTheirHeader) {
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

TEST(DecodeCostsTest, VideosHoldNoMoreFramesThanTheySay) {
  const std::string bytes = Avi(4096, LargeJpeg(4096), 6);
  const PeakMemory memory;
  auto video = Video::Open(bytes, {});
  ASSERT_TRUE(video.ok()) << video.status();
  while ((*video)->Skip()) ASSERT_TRUE((*video)->Last().ok());
  EXPECT_LT(memory.growth(), (*video)->memory_bytes() + 3 * 4096 * 4096 + 16 * kMebibyte);
}

TEST(DecodeCostsTest, VideosOfManyScans) {
  const std::string attack = Avi(8184, ManyScans(8184, 3000), 1);
  const double start = CpuSeconds();
  auto video = Video::Open(attack, {});
  ASSERT_TRUE(video.ok()) << video.status();
  EXPECT_FALSE((*video)->Skip());
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(DecodeCostsTest, VideosOfUnknownCodecs) {
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
TEST(DecodeCostsTest, VideosThatClaimManySamples) {
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
