// Test helpers that create pictures in memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <random>
#include <string>
#include <vector>

namespace saccade::server {

// A smooth picture with a different gradient in each channel and no symmetry that would hide a rotation.
inline cv::Mat SmoothPicture(int width, int height) {
  cv::Mat bgr(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double wave = 30 * std::sin(9.0 * x / width) * std::cos(7.0 * y / height);
      bgr.at<cv::Vec3b>(y, x) =
          cv::Vec3b(static_cast<uint8_t>(40 + 150.0 * x / width + wave),
                    static_cast<uint8_t>(200 - 150.0 * y / height + wave),
                    static_cast<uint8_t>(60 + 70.0 * (x + y) / (width + height) + wave));
    }
  }
  return bgr;
}

// `extension` is ".jpg", ".png", ".webp" or ".bmp".
inline std::string Encode(const std::string& extension, const cv::Mat& picture,
                          const std::vector<int>& options = {}) {
  std::vector<unsigned char> bytes;
  if (!cv::imencode(extension, picture, bytes, options)) return "";
  return std::string(bytes.begin(), bytes.end());
}

// The number's bytes in little-endian order.
inline std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// The same in big-endian order.
inline std::string Big(uint64_t value, int bytes) {
  const std::string text = Little(value, bytes);
  return {text.rbegin(), text.rend()};
}

// Inserts a segment directly after the JPEG's start marker.
inline std::string WithSegment(const std::string& jpeg, char marker, const std::string& payload) {
  const size_t length = payload.size() + 2;
  std::string segment = {'\xFF', marker, static_cast<char>(length >> 8), static_cast<char>(length & 0xFF)};
  return jpeg.substr(0, 2) + segment + payload + jpeg.substr(2);
}

// The payload of an APP1 segment whose EXIF data holds only an orientation, 1 to 8.
inline std::string ExifOrientation(char orientation) {
  using namespace std::string_literals;
  return "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s + orientation + "\0\0\0\0\0\0\0"s;
}

// A WebP of one chunk as one with an extended header and EXIF data.
inline std::string ExtendedWebp(const std::string& webp, cv::Size size, const std::string& exif,
                                bool says_that_it_has_exif = true) {
  constexpr uint64_t kHasExif = 8;
  const std::string chunks = "VP8X" + Little(10, 4) + Little(says_that_it_has_exif ? kHasExif : 0, 4) +
                             Little(static_cast<uint64_t>(size.width - 1), 3) +
                             Little(static_cast<uint64_t>(size.height - 1), 3) + webp.substr(12) + "EXIF" +
                             Little(exif.size(), 4) + exif + std::string(exif.size() % 2, '\0');
  return "RIFF" + Little(chunks.size() + 4, 4) + "WEBP" + chunks;
}

// Changes a few bytes at random positions, and sometimes truncates the end or appends junk.
inline std::string Mutate(std::string bytes, std::mt19937& random) {
  for (unsigned i = 0, flips = 1 + random() % 8; i < flips; ++i) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  if (random() % 8 == 0) bytes.resize(1 + random() % bytes.size());
  if (random() % 8 == 0) bytes.append(random() % 64, static_cast<char>(random()));
  return bytes;
}

}  // namespace saccade::server
