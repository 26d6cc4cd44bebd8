// JPEGs, PNGs and WebPs that are made to take more memory or time than their size suggests, and files like
// them that people send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/decode/prepare.h"
#include "server/decode/testing/costs_fixtures.h"
#include "server/pictures/picture_formats.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

// JPEG

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

// libjpeg would go over all segments of a kind for each one that it keeps.
TEST(DecodeCostsTest, JpegsOfManySegments) {
  std::string jpeg = Encode(".jpg", SmoothPicture(8, 8), {});
  std::string segments;
  for (int i = 0; i < 250'000; ++i) segments += "\xFF\xE1\0\2"s;
  jpeg.insert(2, segments);
  const double start = CpuSeconds();
  EXPECT_EQ(Decoded(jpeg).size(), cv::Size(8, 8));
  EXPECT_LT(CpuSeconds() - start, 0.5);
}

TEST(DecodeCostsTest, ArithmeticJpegsMayHaveFewerScans) {
  std::string jpeg = ManyScans(4096, 4);
  const size_t frame = jpeg.find("\xFF\xC2");
  ASSERT_NE(frame, std::string::npos);
  jpeg[frame + 1] = '\xCA';
  EXPECT_THAT(Refusal(jpeg), HasSubstr("more than 3 scans"));
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

// Data beyond the last row.
TEST(DecodeCostsTest, PngsWhosePixelsInflateToMoreThanTheirSize) {
  const std::string small = Encode(".png", SmoothPicture(1, 1));
  const std::string pixels = "\0\x01\x02\x03"s + std::string(size_t{256} << 20, '\0');
  const std::string attack = small.substr(0, 33) + Chunk("IDAT", Deflated(pixels)) + Chunk("IEND", "");
  EXPECT_LT(attack.size(), 300'000u);
  const double start = CpuSeconds();
  const cv::Mat decoded = Decoded(attack);
  EXPECT_LT(CpuSeconds() - start, 0.05);
  ASSERT_EQ(decoded.size(), cv::Size(1, 1));
  EXPECT_EQ(decoded.at<cv::Vec3b>(0, 0), cv::Vec3b(3, 2, 1));
  EXPECT_TRUE(Same(decoded, DecodedByOpenCv(attack)));
}

TEST(DecodeCostsTest, CopiesOfPngsAreChargedWhole) {
  const std::string small = Encode(".png", SmoothPicture(1, 1));
  const std::string without_end = small.substr(0, small.size() - 12);
  for (const std::string& attack :
       {WithChunks(small, Chunk("tEXt", "a\0"s + std::string(1'000'000, 'x'))),
        WithChunks(without_end, Chunk("tEXt", "a\0b"s)) + Chunk("IEND", std::string(1'000'000, 'x'))}) {
    const auto header = ReadPngHeader(attack);
    ASSERT_TRUE(header.ok()) << header.status();
    const std::string copy = WithoutExtraChunks(attack, *header);
    EXPECT_EQ(static_cast<int64_t>(copy.size()), header->copied_bytes);
    EXPECT_LE(copy.capacity(), copy.size() + 64);
    EXPECT_TRUE(Same(Decoded(attack), DecodedByOpenCv(small)));
  }
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
      {"turned WebP", ExtendedWebp(Encode(".webp", transparent, {cv::IMWRITE_WEBP_QUALITY, 101}),
                                   transparent.size(), ExifOrientation(6).substr(6))},
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

}  // namespace
}  // namespace saccade::server
