// Which calls are captured, and how much of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace saccade::server {

enum class CapturedPixels {
  // Requests and answers as they were sent.
  kFull,
  // SHA-256 and sizes of requests and answers.
  kHash,
  // Sizes alone.
  kNone,
};

// "full", "hash", "none".
absl::string_view NameOf(CapturedPixels pixels);

// What can be changed while the daemon runs.
struct CaptureChoice {
  bool enabled = true;
  // The share of calls that is captured, from 0 to 1. Calls that fail because of their request or the daemon
  // are always captured.
  double rate = 1;
  // By model, instead of `rate`.
  std::map<std::string, double, std::less<>> models = {};
};

struct CaptureOptions {
  // Empty: calls are not written to files.
  std::string folder = {};
  CaptureChoice choice = {};
  // The daemon's flag for a choice that is not enabled at the start.
  bool paused = false;
  CapturedPixels pixels = CapturedPixels::kFull;
  // Bounds of all segments together. The oldest are deleted.
  int64_t max_bytes = int64_t{10} << 30;
  absl::Duration max_age = absl::Hours(24 * 7);
  // Memory for the calls that wait to be written, and again for the events that wait to be sent.
  int64_t queue_bytes = int64_t{64} << 20;
  // HTTP address that takes CloudEvents; empty for none.
  std::string sink = {};
  // The daemon's name and Kubernetes' namespace in events.
  std::string id = {};
  std::string kubernetes_namespace = {};
  std::string version = {};
};

}  // namespace saccade::server
