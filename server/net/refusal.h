// Why the network front refused or ended something; the label `reason` of a metric.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace saccade::server {

enum class Refusal {
  kConnections,           // more connections than --max-connections
  kConnectionsOfAddress,  // more connections from one address than --max-connections-per-address
  kHandshakes,            // more TLS handshakes from one address than --max-handshakes-per-second
  kHandshakeTimeout,      // TLS was not agreed on in time
  kHeadTimeout,           // a request's head was not complete in time
  kIdleTimeout,           // a connection without requests was closed
  kStalledUpload,         // a request's body came too slowly
  kStalledDownload,       // a response was read too slowly
  kHeadTooLarge,          // more bytes or fields in a head than allowed
  kBodyTooLarge,          // a message or body above --max-message-bytes
  kDecompressedTooLarge,  // a compressed message that grows beyond its bound
  kBytes,                 // --max-inflight-bytes, or a client's half of it, was used up
  kHealthChecks,          // more open health checks than the reserve has places for
  kHealthWatches,         // more open health watches than --max-health-watches, or of one client
  kStreams,               // more open streams on a connection than --max-streams-per-connection
  kResets,                // streams were reset too often
  kControlFrames,         // too many SETTINGS, PING, PRIORITY, WINDOW_UPDATE or empty DATA frames
  kContinuations,         // a head in too many CONTINUATION frames
  kMalformed,             // bytes that are not the protocol's
  kHost,                  // a Host that is not served, or a foreign Origin
  kUnauthenticated,       // no valid token
};
inline constexpr size_t kRefusals = static_cast<size_t>(Refusal::kUnauthenticated) + 1;

// "connections", "connections_of_address", ...
absl::string_view NameOf(Refusal refusal);

// Counts refusals. Thread-safe.
class RefusalCounter {
 public:
  virtual ~RefusalCounter() = default;
  virtual void Count(Refusal refusal) = 0;
  // Counts accepted requests that were ended before their clients had the answers, although the clients had
  // neither cancelled them nor left: the answers were read too slowly, or the connection was too old.
  virtual void CountCut(size_t /*requests*/) {}
};

}  // namespace saccade::server
