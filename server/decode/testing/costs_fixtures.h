// Test helpers that measure what decoding a file takes.
#pragma once

#include <malloc.h>
#include <zlib.h>

#include <ctime>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <vector>

#include "server/decode/prepare.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {

inline constexpr int64_t kMebibyte = 1 << 20;

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

inline double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline Picture File(const std::string& bytes) {
  return EncodedPicture{.data = {.owner = nullptr, .bytes = bytes}};
}

// The upright picture as the network's input is made from; empty, with the error in `refusal`, if it is
// refused: the message of INVALID_ARGUMENT, or the code of any other error.
inline cv::Mat Decoded(const std::string& bytes, std::string* refusal = nullptr) {
  const Picture picture = File(bytes);
  models::ImageInput input;
  input.antialias = false;
  input.reduced_jpeg = false;
  const auto header = ReadHeader(picture, {});
  const auto decoded = header.ok() ? DecodePicture(picture, *header, input) : header.status();
  if (!decoded.ok()) {
    if (refusal != nullptr) {
      *refusal = decoded.status().code() == absl::StatusCode::kInvalidArgument
                     ? std::string(decoded.status().message())
                     : absl::StatusCodeToString(decoded.status().code());
    }
    return {};
  }
  const SourcePixels& pixels = decoded->pixels;
  return cv::Mat(static_cast<int>(pixels.height), static_cast<int>(pixels.width), CV_8UC3,
                 const_cast<uint8_t*>(pixels.data), pixels.row_bytes)
      .clone();
}

// The message of INVALID_ARGUMENT; of other errors the code; for a file that is accepted, that it is.
inline std::string Refusal(const std::string& bytes) {
  std::string refusal = "it is accepted";
  Decoded(bytes, &refusal);
  return refusal;
}

inline cv::Mat DecodedByOpenCv(const std::string& bytes) {
  return cv::imdecode(std::vector<uint8_t>(bytes.begin(), bytes.end()), cv::IMREAD_COLOR);
}

inline bool Same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && !a.empty() && cv::norm(a, b, cv::NORM_INF) == 0;
}

inline std::string Deflated(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string out(size, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
            data.size(), 9);
  return out.substr(0, size);
}

// A PNG's chunk.
inline std::string Chunk(const std::string& type, const std::string& data) {
  const std::string checked = type + data;
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return Big(data.size(), 4) + checked + Big(sum, 4);
}

// Inserts chunks after the PNG's header.
inline std::string WithChunks(const std::string& png, const std::string& chunks) {
  return png.substr(0, 33) + chunks + png.substr(33);
}

// A progressive grey JPEG. After the first scan each takes 15 bits for every 32,767 blocks, which it skips.
inline std::string ManyScans(int side, int scans) {
  using namespace std::string_literals;
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

}  // namespace saccade::server
