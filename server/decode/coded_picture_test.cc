#include "server/pictures/coded_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
// libjpeg's header needs FILE.
#include <cstdio>

#include <jpeglib.h>
#include <png.h>

#include <cstdlib>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>
#include <vector>

#include "server/decode/testing/costs_fixtures.h"
#include "server/pictures/picture_header.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

// Pixels of `channels` bytes each that are no noise, since JPEG would blur that.
std::vector<uint8_t> Pixels(int width, int height, int channels) {
  const cv::Mat bgr = SmoothPicture(width, height);
  std::vector<uint8_t> pixels;
  for (int i = 0; i < width * height; ++i) {
    for (int c = 0; c < channels; ++c)
      pixels.push_back(bgr.data[3 * i + c % 3] ^ static_cast<uint8_t>(c / 3));
  }
  return pixels;
}

struct JpegForm {
  J_COLOR_SPACE pixels = JCS_RGB;
  J_COLOR_SPACE stored = JCS_YCbCr;
  bool is_progressive = false;
  bool is_arithmetic = false;
  int sampling = 1;
  unsigned restart_rows = 0;
};

std::string WriteJpeg(int width, int height, const JpegForm& form) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = form.pixels == JCS_CMYK ? 4 : form.pixels == JCS_RGB ? 3 : 1;
  info.in_color_space = form.pixels;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, form.stored);
  if (form.is_progressive) jpeg_simple_progression(&info);
  info.arith_code = form.is_arithmetic ? TRUE : FALSE;
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = form.sampling;
  info.restart_in_rows = static_cast<int>(form.restart_rows);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> pixels = Pixels(width, height, info.input_components);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = &pixels[static_cast<size_t>(info.next_scanline) * width * info.input_components];
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return jpeg;
}

std::string WritePng(int width, int height, int colour, int depth, bool is_interlaced) {
  std::string bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &bytes,
      [](png_structp to, png_bytep data, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(to))->append(reinterpret_cast<const char*>(data), size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth, colour,
               is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  const uint8_t transparent[] = {0, 100, 200};
  if (colour == PNG_COLOR_TYPE_PALETTE) {
    for (int i = 0; i < 1 << depth; ++i)
      palette.push_back(
          {static_cast<png_byte>(7 * i), static_cast<png_byte>(255 - i), static_cast<png_byte>(i)});
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    png_set_tRNS(png, info, transparent, std::min(3, 1 << depth), nullptr);
  }
  png_write_info(png, info);
  std::mt19937 random(7);
  std::vector<uint8_t> rows(png_get_rowbytes(png, info) * static_cast<size_t>(height));
  for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random());
  std::vector<png_bytep> starts;
  for (int y = 0; y < height; ++y)
    starts.push_back(&rows[png_get_rowbytes(png, info) * static_cast<size_t>(y)]);
  png_write_image(png, starts.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

TEST(CodedPictureTest, JpegsAreReadAsOpenCvReadsThem) {
  const JpegForm forms[] = {
      {},
      {.is_progressive = true},
      {.is_arithmetic = true},
      {.is_progressive = true, .is_arithmetic = true},
      {.sampling = 2},
      {.is_progressive = true, .sampling = 2},
      {.restart_rows = 1},
      {.stored = JCS_RGB},
      {.pixels = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE},
      {.pixels = JCS_CMYK, .stored = JCS_CMYK},
      {.pixels = JCS_CMYK, .stored = JCS_YCCK},
  };
  for (const JpegForm& form : forms) {
    for (const cv::Size size : {cv::Size(67, 45), cv::Size(1, 1), cv::Size(16, 33)}) {
      const std::string jpeg = WriteJpeg(size.width, size.height, form);
      EXPECT_TRUE(Same(Decoded(jpeg), DecodedByOpenCv(jpeg)))
          << form.pixels << " " << form.stored << " " << form.is_progressive << form.is_arithmetic << " "
          << size;
    }
  }
}

TEST(CodedPictureTest, JpegsAreReducedAsOpenCvReducesThem) {
  const std::string jpeg = WriteJpeg(67, 45, {.sampling = 2});
  const std::vector<uint8_t> bytes(jpeg.begin(), jpeg.end());
  for (const auto& [reduction, mode] :
       {std::pair{2, cv::IMREAD_REDUCED_COLOR_2}, std::pair{4, cv::IMREAD_REDUCED_COLOR_4},
        std::pair{8, cv::IMREAD_REDUCED_COLOR_8}}) {
    const auto reduced = DecodeJpeg(jpeg, PictureHeader(), reduction, nullptr);
    ASSERT_TRUE(reduced.ok()) << reduced.status();
    EXPECT_TRUE(Same(*reduced, cv::imdecode(bytes, mode))) << reduction;
  }
}

TEST(CodedPictureTest, PngsAreReadAsOpenCvReadsThem) {
  const std::pair<int, std::vector<int>> forms[] = {{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                                                    {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
                                                    {PNG_COLOR_TYPE_RGB, {8, 16}},
                                                    {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                                                    {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}};
  for (const auto& [colour, depths] : forms) {
    for (const int depth : depths) {
      for (const bool is_interlaced : {false, true}) {
        for (const cv::Size size : {cv::Size(67, 45), cv::Size(1, 1), cv::Size(3, 2), cv::Size(1, 9),
                                    cv::Size(9, 1), cv::Size(5, 5)}) {
          const std::string png = WritePng(size.width, size.height, colour, depth, is_interlaced);
          EXPECT_TRUE(Same(Decoded(png), DecodedByOpenCv(png)))
              << colour << " " << depth << " " << is_interlaced << " " << size;
        }
      }
    }
  }
}

TEST(CodedPictureTest, PngsAreTurnedUprightByTheirExif) {
  const cv::Mat bgr = SmoothPicture(67, 45);
  const std::string png = Encode(".png", bgr);
  cv::Mat upright;
  cv::rotate(bgr, upright, cv::ROTATE_90_CLOCKWISE);
  const std::string named = ExifOrientation(6);
  for (const std::string& exif : {named, named.substr(6)})
    EXPECT_TRUE(Same(Decoded(WithChunks(png, Chunk("eXIf", exif))), upright)) << exif.size();
}

TEST(CodedPictureTest, WebpsAreReadAsOpenCvReadsThem) {
  cv::Mat transparent(45, 67, CV_8UC4);
  cv::randu(transparent, 0, 256);
  for (const cv::Mat& picture :
       {SmoothPicture(67, 45), SmoothPicture(1, 1), SmoothPicture(700, 500), transparent}) {
    for (const int quality : {20, 90, 101}) {
      const std::string webp = Encode(".webp", picture, {cv::IMWRITE_WEBP_QUALITY, quality});
      EXPECT_TRUE(Same(Decoded(webp), DecodedByOpenCv(webp))) << picture.size() << " " << quality;
    }
  }
}

// How often it is asked whether a picture of two megapixels is still wanted. It ends with the answer of any
// of these times.
int TimesAsked(const std::string& bytes) {
  const auto header = ReadPictureHeader(bytes, {});
  EXPECT_TRUE(header.ok()) << header.status();
  const auto decode = [&](int ends_at) {
    int asked = 0;
    const StillWanted wanted = [&] {
      return ++asked == ends_at ? absl::CancelledError("the client has left") : absl::OkStatus();
    };
    const auto decoded = DecodeWhole(bytes, *header, 1, wanted);
    if (ends_at == 0) {
      EXPECT_TRUE(decoded.ok()) << decoded.status();
    } else {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kCancelled);
      EXPECT_EQ(asked, ends_at) << "it goes on after its end";
    }
    return asked;
  };
  const int times = decode(0);
  for (const int ends_at : {1, times / 2, times}) decode(ends_at);
  return times;
}

TEST(CodedPictureTest, DecodingEndsWithItsCall) {
  cv::Mat noise(1024, 2048, CV_8UC3);
  cv::randu(noise, 0, 256);
  const std::pair<const char*, std::string> pictures[] = {
      {"baseline JPEG", Encode(".jpg", noise)},
      {"progressive JPEG", Encode(".jpg", noise, {cv::IMWRITE_JPEG_PROGRESSIVE, 1})},
      {"JPEG of many scans", ManyScans(1440, 100)},
      {"PNG", Encode(".png", noise)},
      {"interlaced PNG", WritePng(2048, 1024, PNG_COLOR_TYPE_RGB, 8, true)},
      {"even PNG", Encode(".png", cv::Mat::zeros(1024, 2048, CV_8UC3))},
      {"lossy WebP", Encode(".webp", noise, {cv::IMWRITE_WEBP_QUALITY, 80})},
      {"lossless WebP", Encode(".webp", noise, {cv::IMWRITE_WEBP_QUALITY, 101})},
  };
  // A quarter of a megapixel each, or 4 KiB of an even PNG, which has 6 of them.
  for (const auto& [name, bytes] : pictures) EXPECT_GE(TimesAsked(bytes), name[0] == 'e' ? 2 : 8) << name;
  EXPECT_GT(TimesAsked(ManyScans(1440, 100)), 100 * 100) << "each scan has 180 rows of blocks";
}

// What libraries say of a file is told to the client, or not at all: the daemon's stderr is its log.
TEST(CodedPictureTest, NothingIsWrittenToStderr) {
  std::string png = WritePng(8, 8, PNG_COLOR_TYPE_PALETTE, 8, false);
  const size_t at = png.find("tRNS") - 4;
  const std::string chunk = png.substr(at, 12 + 3);
  png.insert(at, chunk);
  std::string jpeg = WriteJpeg(64, 64, {});
  jpeg.erase(jpeg.size() - 40, 30);
  std::string damaged = jpeg;
  damaged.replace(damaged.find("\xFF\xDB"), 2, "\xFF\xEE");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(Decoded(png).empty());
  EXPECT_FALSE(Decoded(jpeg).empty());
  EXPECT_THAT(Refusal(damaged),
              HasSubstr("the JPEG picture is damaged: Quantization table 0x00 was not defined"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(CodedPictureTest, RowsThatAreMissing) {
  // A size of twice as many rows.
  std::string png = WritePng(8, 8, PNG_COLOR_TYPE_RGB, 8, false);
  png[23] = 16;
  const auto sum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17));
  png.replace(29, 4, Big(sum, 4));
  EXPECT_THAT(Refusal(png), HasSubstr("the PNG picture is damaged: "));
  const std::string webp = Encode(".webp", SmoothPicture(64, 64), {cv::IMWRITE_WEBP_QUALITY, 80});
  std::string cut = webp.substr(0, webp.size() / 2 & ~size_t{1});
  cut.replace(4, 4, Little(cut.size() - 8, 4));
  cut.replace(16, 4, Little(cut.size() - 20, 4));
  EXPECT_THAT(Refusal(cut), HasSubstr("the WebP picture is damaged"));
}

}  // namespace
}  // namespace saccade::server
