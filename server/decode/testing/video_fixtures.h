// Test helpers that create videos in memory.
#pragma once

#include <string>
#include <vector>

#include "models/api/placement.h"
#include "server/pictures/testing/picture_fixtures.h"

namespace saccade::server {

inline std::string RiffChunk(const std::string& type, const std::string& data) {
  return type + Little(data.size(), 4) + data + std::string(data.size() % 2, '\0');
}

// An AVI whose header gives `claimed` as the size of its frames, which are these JPEGs, 25 in a second.
inline std::string MotionJpegAvi(models::Size claimed, const std::vector<std::string>& frames) {
  const std::string size =
      Little(static_cast<uint64_t>(claimed.width), 4) + Little(static_cast<uint64_t>(claimed.height), 4);
  const std::string header = RiffChunk(
      "avih", Little(40'000, 4) + std::string(12, '\0') + Little(frames.size(), 4) + std::string(4, '\0') +
                  Little(1, 4) + std::string(4, '\0') + size + std::string(16, '\0'));
  const std::string stream =
      RiffChunk("strh", "vidsMJPG" + std::string(12, '\0') + Little(1, 4) + Little(25, 4) + Little(0, 4) +
                            Little(frames.size(), 4) + std::string(20, '\0')) +
      RiffChunk("strf", Little(40, 4) + size + Little(1, 2) + Little(24, 2) + "MJPG" + std::string(20, '\0'));
  std::string movie = "movi";
  for (const std::string& frame : frames) movie += RiffChunk("00dc", frame);
  return RiffChunk("RIFF", "AVI " + RiffChunk("LIST", "hdrl" + header + RiffChunk("LIST", "strl" + stream)) +
                               RiffChunk("LIST", movie));
}

// A grey baseline JPEG of two bits for each block.
inline std::string LargeJpeg(int side) {
  using namespace std::string_literals;
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

}  // namespace saccade::server
