// Test helpers that create videos in memory.
#pragma once

#include <string>
#include <vector>

#include "models/api/placement.h"
#include "server/decode/picture_fixtures.h"

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

}  // namespace saccade::server
