#include "server/pictures/picture_header.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pictures/testing/picture_fixtures.h"
#include "server/pictures/testing/tiff_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::string_literals;

// Expects that reading `bytes` fails with INVALID_ARGUMENT and returns the message.
std::string Refusal(const std::string& bytes, const DecodeLimits& limits = {}) {
  const auto header = ReadPictureHeader(bytes, limits);
  EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument) << header.status();
  return std::string(header.status().message());
}

std::string Big32(uint32_t value) {
  const std::string text = Little(value, 4);
  return std::string(text.rbegin(), text.rend());
}

// A PNG with wrong checksums, which header readers do not check.
std::string FakePng(uint32_t width, uint32_t height, const std::string& depth_and_colour = "\x08\x02"s) {
  const std::string header = Big32(width) + Big32(height) + depth_and_colour + "\0\0\0"s;
  return "\x89PNG\r\n\x1A\n"s + Big32(13) + "IHDR" + header + "....\0\0\0\1IDATx....\0\0\0\0IEND...."s;
}

// A baseline JPEG with one empty scan.
std::string FakeJpeg(const std::string& frame) {
  return "\xFF\xD8\xFF\xC0"s + std::string{'\0', static_cast<char>(frame.size() + 2)} + frame +
         "\xFF\xDA\0\x02\xFF\xD9"s;
}

std::string FakeWebp(const std::string& chunks) {
  return "RIFF" + Little(static_cast<uint32_t>(chunks.size() + 4), 4) + "WEBP" + chunks;
}

struct Format {
  const char* extension;
  PictureFormat format;
  std::vector<int> options;
};

const Format kFormats[] = {
    {".jpg", PictureFormat::kJpeg, {}},
    {".jpg", PictureFormat::kJpeg, {cv::IMWRITE_JPEG_PROGRESSIVE, 1}},
    {".jpg", PictureFormat::kJpeg, {cv::IMWRITE_JPEG_RST_INTERVAL, 2}},
    {".png", PictureFormat::kPng, {}},
    {".webp", PictureFormat::kWebp, {cv::IMWRITE_WEBP_QUALITY, 80}},
    {".webp", PictureFormat::kWebp, {cv::IMWRITE_WEBP_QUALITY, 101}},
    {".bmp", PictureFormat::kBmp, {}},
};

TEST(PictureHeaderTest, ReadsEveryFormat) {
  for (const Format& format : kFormats) {
    SCOPED_TRACE(format.extension);
    const auto header =
        ReadPictureHeader(Encode(format.extension, SmoothPicture(61, 37), format.options), {});
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->format, format.format);
    EXPECT_EQ(header->width, 61);
    EXPECT_EQ(header->height, 37);
    EXPECT_EQ(header->pixels(), 61 * 37);
  }
}

TEST(PictureHeaderTest, EveryPrefixIsRefusedAsTruncated) {
  for (const Format& format : kFormats) {
    const std::string whole = Encode(format.extension, SmoothPicture(40, 30), format.options);
    for (size_t size = 1; size < whole.size(); ++size) {
      const std::string refusal = Refusal(whole.substr(0, size));
      // With an incomplete signature the format is unknown.
      if (size < 12) continue;
      ASSERT_THAT(refusal, AllOf(HasSubstr(FormatName(format.format)),
                                 HasSubstr("truncated: " + std::to_string(size) + " bytes")));
    }
  }
}

TEST(PictureHeaderTest, TrailingBytesAreNoFault) {
  for (const Format& format : kFormats) {
    const std::string padded =
        Encode(format.extension, SmoothPicture(40, 30), format.options) + std::string(33, 'x');
    EXPECT_TRUE(ReadPictureHeader(padded, {}).ok()) << format.extension;
  }
}

TEST(PictureHeaderTest, ThumbnailIsNotTakenForThePicture) {
  const std::string thumbnail = Encode(".jpg", SmoothPicture(16, 12));
  const std::string jpeg =
      WithSegment(Encode(".jpg", SmoothPicture(61, 37)), '\xE1', "Exif\0\0"s + thumbnail);
  const auto header = ReadPictureHeader(jpeg, {});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->width, 61);
  EXPECT_EQ(header->height, 37);
  // The thumbnail's end marker is still in the file.
  EXPECT_THAT(Refusal(jpeg.substr(0, jpeg.size() - 2)), HasSubstr("truncated"));
}

TEST(PictureHeaderTest, EmptyIsSaidToBeEmpty) { EXPECT_THAT(Refusal(""), HasSubstr("the picture is empty")); }

TEST(PictureHeaderTest, NamesWhatCameInstead) {
  EXPECT_THAT(Refusal("GIF89a......"),
              AllOf(HasSubstr("it is GIF, 12 bytes"), HasSubstr("JPEG, PNG, WebP, TIFF and BMP")));
  EXPECT_THAT(Refusal("\0\0\0\x1C"
                      "ftypavif"s),
              HasSubstr("AVIF"));
  EXPECT_THAT(Refusal("\0\0\0\x1C"
                      "ftypheic"s),
              HasSubstr("HEIC"));
  EXPECT_THAT(Refusal("%PDF-1.7"), HasSubstr("PDF"));
  EXPECT_THAT(Refusal("<svg xmlns="), HasSubstr("SVG"));
  EXPECT_THAT(Refusal("/9j/4AAQSkZJRg"), HasSubstr("base64"));
  EXPECT_THAT(Refusal("data:image/png;base64,"), HasSubstr("data URL"));
  EXPECT_THAT(Refusal("\x01\x02\xAB"), HasSubstr("starts with the bytes 0102ab"));
  EXPECT_THAT(Refusal("RIFF\x04\0\0\0WAVE"s), HasSubstr("52494646"));
}

TEST(PictureHeaderTest, HugeClaimsAreRefusedBeforeDecoding) {
  EXPECT_THAT(Refusal(FakePng(60'000, 60'000)), HasSubstr("60000 x 60000 pixels large; at most 67108864"));
  EXPECT_THAT(Refusal(FakePng(0x7FFFFFFF, 0x7FFFFFFF)), HasSubstr("at most 67108864"));
  EXPECT_THAT(Refusal(FakePng(0x80000000, 1)), HasSubstr("a width or height outside of 1 to"));
  EXPECT_THAT(Refusal(FakeJpeg("\x08\xFF\xFF\xFF\xFF\x03"s)), HasSubstr("65535 x 65535"));
}

TEST(PictureHeaderTest, LimitsMayBeReachedButNotPassed) {
  const std::string png = FakePng(100, 50);
  const int64_t size = static_cast<int64_t>(png.size());
  EXPECT_TRUE(ReadPictureHeader(png, {.max_pixels = 5000, .max_bytes = size}).ok());
  EXPECT_THAT(Refusal(png, {.max_pixels = 4999}), HasSubstr("at most 4999 pixels"));
  EXPECT_THAT(Refusal(png, {.max_bytes = size - 1}), HasSubstr("bytes; at most"));
}

TEST(PictureHeaderTest, Tiffs) {
  const std::string whole = Encode(".tiff", SmoothPicture(61, 37));
  const auto header = ReadPictureHeader(whole, {});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->format, PictureFormat::kTiff);
  EXPECT_EQ(header->width, 61);
  EXPECT_EQ(header->height, 37);
  EXPECT_THAT(Refusal("II*\0...."s), HasSubstr("TIFF"));
  EXPECT_THAT(Refusal("MM\0*...."s), HasSubstr("TIFF"));
  EXPECT_THAT(Refusal(Encode(".tiff", cv::Mat(8, 8, CV_32FC1, cv::Scalar(1)))),
              HasSubstr("cannot be converted to RGB"));
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) ReadPictureHeader(Mutate(whole, random), {}).IgnoreError();
}

TEST(PictureHeaderTest, ColoursOfTiffsThatAreNotConvertedAreNamed) {
  const std::pair<TiffLayout, std::string> layouts[] = {
      {{.samples = 4, .bits = 16, .photometric = PHOTOMETRIC_SEPARATED}, "CMYK of 16 bits a channel"},
      {{.samples = 4, .planes = true, .bits = 16, .photometric = PHOTOMETRIC_SEPARATED},
       "CMYK of 16 bits a channel"},
      {{.bits = 16, .photometric = PHOTOMETRIC_YCBCR}, "YCbCr of 16 bits a channel"},
      {{.samples = 1, .bits = 16, .photometric = PHOTOMETRIC_PALETTE}, "palette of 16 bits a channel"},
      {{.bits = 4}, "RGB of 4 bits a channel"}};
  for (const auto& [layout, colours] : layouts) {
    EXPECT_THAT(Refusal(Tiff(layout, 40, 30)),
                AllOf(HasSubstr("the TIFF cannot be read: its pixels cannot be converted to RGB (" + colours),
                      HasSubstr("; save it again as grey or RGB of 8 bits a channel")));
    TiffLayout usual = layout;
    usual.bits = 8;
    EXPECT_TRUE(ReadPictureHeader(Tiff(usual, 40, 30), {}).ok()) << colours;
  }
}

TEST(PictureHeaderTest, OddPngs) {
  EXPECT_TRUE(ReadPictureHeader(FakePng(3, 2), {}).ok());
  EXPECT_TRUE(ReadPictureHeader(FakePng(3, 2, "\x10\x06"s), {}).ok());
  EXPECT_THAT(Refusal(FakePng(0, 2)), HasSubstr("a width or height outside of 1 to"));
  EXPECT_THAT(Refusal(FakePng(3, 2, "\x10\x03"s)), HasSubstr("bit depth and colour type"));
  std::string headless = FakePng(3, 2);
  headless[12] = 'J';
  EXPECT_THAT(Refusal(headless), HasSubstr("IHDR"));
  std::string empty = FakePng(3, 2);
  empty.replace(empty.find("IDAT"), 4, "tEXt");
  EXPECT_THAT(Refusal(empty), HasSubstr("no pixels"));
}

TEST(PictureHeaderTest, OddJpegs) {
  EXPECT_TRUE(ReadPictureHeader(FakeJpeg("\x08\0\x02\0\x03\x01"s), {}).ok());
  EXPECT_TRUE(ReadPictureHeader(FakeJpeg("\x08\0\x02\0\x03\x04"s), {}).ok()) << "CMYK";
  EXPECT_THAT(Refusal(FakeJpeg("\x08\0\x02\0\x03\x02"s)), HasSubstr("components"));
  EXPECT_THAT(Refusal(FakeJpeg("\x0C\0\x02\0\x03\x03"s)), HasSubstr("8-bit JPEG"));
  EXPECT_THAT(Refusal(FakeJpeg("\x08\0\0\0\x03\x03"s)), HasSubstr("no width or no height"));
  EXPECT_THAT(Refusal(FakeJpeg("\x08\0\x02\0\x03"s)), HasSubstr("too short"));
  std::string lossless = FakeJpeg("\x08\0\x02\0\x03\x03"s);
  lossless[3] = '\xC3';
  EXPECT_THAT(Refusal(lossless), HasSubstr("lossless"));
  lossless[3] = '\xC5';
  EXPECT_THAT(Refusal(lossless), HasSubstr("hierarchical"));
  EXPECT_THAT(Refusal("\xFF\xD8\xFF\xD9"s), HasSubstr("no pixels"));
  EXPECT_THAT(Refusal("\xFF\xD8\xFF\xDA\0\x02\xFF\xD9"s), HasSubstr("before its frame header"));
  EXPECT_THAT(Refusal("\xFF\xD8\xFF\xE0\0\x01\xFF\xD9"s), HasSubstr("shorter than its own length"));
  EXPECT_THAT(Refusal("\xFF\xD8\xFF\xD8\xFF\xD9"s), HasSubstr("another picture"));
}

TEST(PictureHeaderTest, OddWebps) {
  const std::string lossless = "VP8L\x06\0\0\0\x2F\x02\x40\0\0\0"s;  // 3 x 2
  EXPECT_TRUE(ReadPictureHeader(FakeWebp(lossless), {}).ok());
  const auto extended = [](char flags, char width) {
    return "VP8X\x0A\0\0\0"s + flags + "\0\0\0"s + width + "\0\0\x01\0\0"s;
  };
  const auto header = ReadPictureHeader(FakeWebp(extended(0x10, 2) + "ALPH\x01\0\0\0x\0"s + lossless), {});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->width, 3);
  EXPECT_EQ(header->height, 2);
  EXPECT_THAT(Refusal(FakeWebp(extended(0x10, 5) + lossless)), HasSubstr("differ in size"));
  EXPECT_THAT(Refusal(FakeWebp(extended(0x02, 2) + lossless)), HasSubstr("animation"));
  EXPECT_THAT(Refusal(FakeWebp("VP8L\x01\0\0\0\x2F\0"s)), HasSubstr("too short"));
  EXPECT_THAT(Refusal(FakeWebp("VP8L\x06\0\0\0\x2F\x02\x40\0\x40\0"s)), HasSubstr("version"));
  const std::string padding(128 - 12 - lossless.size(), 'x');
  EXPECT_TRUE(ReadPictureHeader(FakeWebp(lossless + padding + "DICN"), {}).ok());
  EXPECT_THAT(Refusal(FakeWebp("VP8 \x0A\0\0\0\0\0\0\0\0\0\0\0\0\0"s)), HasSubstr("key frame"));
  EXPECT_THAT(Refusal(FakeWebp("")), HasSubstr("no pixels"));
  EXPECT_THAT(Refusal("RIFF\xFF\xFF\xFF\xFFWEBP"s), HasSubstr("truncated"));
}

TEST(PictureHeaderTest, OddBmps) {
  const std::string bmp = Encode(".bmp", SmoothPicture(5, 4));
  const auto with = [&](size_t at, uint32_t value) {
    return std::string(bmp).replace(at, 4, Little(value, 4));
  };
  const auto upside_down = ReadPictureHeader(with(22, static_cast<uint32_t>(-4)), {});
  ASSERT_TRUE(upside_down.ok()) << upside_down.status();
  EXPECT_EQ(upside_down->height, 4);
  EXPECT_THAT(Refusal(with(22, 0x80000000)), HasSubstr("a width or height above 2^24"));
  EXPECT_THAT(Refusal(with(18, static_cast<uint32_t>(-5))), HasSubstr("no width"));
  EXPECT_THAT(Refusal(with(22, 5)), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(with(10, 0xFFFFFFFF)), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(with(14, 13)), HasSubstr("unknown size"));
  EXPECT_THAT(Refusal(with(14, 0xFFFFFFFF)), HasSubstr("truncated"));
  EXPECT_THAT(Refusal(with(26, 7u << 16)), HasSubstr("bit depth"));
  EXPECT_THAT(Refusal(with(30, 1)), HasSubstr("compressed"));
}

TEST(PictureHeaderTest, APictureIsKnownByItsFirstBytes) {
  for (const Format& format : kFormats) {
    const std::string whole = Encode(format.extension, SmoothPicture(24, 16), format.options);
    EXPECT_TRUE(IsPicture(whole.substr(0, kPictureStartBytes))) << format.extension;
  }
  for (const char* other : {"", "text", "RIFF....AVI ", "GIF89a"}) EXPECT_FALSE(IsPicture(other)) << other;
}

// Accepted sizes stay within the limits; the sanitizers check memory accesses.
TEST(PictureHeaderTest, MutatedPicturesNeverBreakTheReader) {
  std::mt19937 random(7);
  for (const Format& format : kFormats) {
    const std::string whole = Encode(format.extension, SmoothPicture(24, 16), format.options);
    for (int i = 0; i < 3000; ++i) {
      const auto header = ReadPictureHeader(Mutate(whole, random), {});
      if (header.ok()) {
        ASSERT_GE(header->width, 1);
        ASSERT_GE(header->height, 1);
        ASSERT_LE(header->pixels(), DecodeLimits().max_pixels);
      } else {
        ASSERT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
}

}  // namespace
}  // namespace saccade::server
