#include "server/net/refusal.h"

namespace saccade::server {

absl::string_view NameOf(Refusal refusal) {
  switch (refusal) {
    case Refusal::kConnections:
      return "connections";
    case Refusal::kConnectionsOfAddress:
      return "connections_of_address";
    case Refusal::kHandshakes:
      return "handshakes";
    case Refusal::kHandshakeTimeout:
      return "handshake_timeout";
    case Refusal::kHeadTimeout:
      return "head_timeout";
    case Refusal::kIdleTimeout:
      return "idle_timeout";
    case Refusal::kStalledUpload:
      return "stalled_upload";
    case Refusal::kStalledDownload:
      return "stalled_download";
    case Refusal::kHeadTooLarge:
      return "head_too_large";
    case Refusal::kBodyTooLarge:
      return "body_too_large";
    case Refusal::kDecompressedTooLarge:
      return "decompressed_too_large";
    case Refusal::kBytes:
      return "bytes";
    case Refusal::kHealthChecks:
      return "health_checks";
    case Refusal::kHealthWatches:
      return "health_watches";
    case Refusal::kStreams:
      return "streams";
    case Refusal::kResets:
      return "resets";
    case Refusal::kControlFrames:
      return "control_frames";
    case Refusal::kContinuations:
      return "continuations";
    case Refusal::kMalformed:
      return "malformed";
    case Refusal::kHost:
      return "host";
    case Refusal::kUnauthenticated:
      return "unauthenticated";
  }
  return "unknown";
}

}  // namespace saccade::server
