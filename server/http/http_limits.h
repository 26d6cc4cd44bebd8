// Bounds on what an HTTP client may send, in size, number and time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace saccade::server {

struct HttpLimits {
  // Decoded bytes of a head: names, values and 32 bytes for each field.
  size_t max_head_bytes = 16 << 10;
  size_t max_head_fields = 128;
  // CONTINUATION frames of one HTTP/2 head.
  int max_continuations = 16;
  // Open streams of one HTTP/2 connection. Further ones are refused; a client that goes on opening more is
  // disconnected.
  int max_streams = 256;
  // Streams that the client may reset in a second, averaged; with a burst of as many. Then it is
  // disconnected.
  int max_resets_per_second = 200;
  // SETTINGS, PING, PRIORITY and empty DATA frames in a second, likewise. One PING for each part of an answer
  // is not counted.
  int max_control_frames_per_second = 100;
  // WINDOW_UPDATE frames in a second, likewise. Clients send about one for every two DATA frames.
  int max_window_updates_per_second = 20000;

  // From the first byte of a head to its last.
  absl::Duration head_timeout = absl::Seconds(10);
  // How long a connection may stay open without a request.
  absl::Duration idle_timeout = absl::Minutes(5);
  // Maximum random extension of idle_timeout, as a share of it. Chosen anew for each connection.
  double idle_spread = 0;
  // A connection older than this accepts no new requests (spread by a tenth), so that clients reconnect and
  // spread over the servers.
  absl::Duration max_connection_age = absl::InfiniteDuration();
  absl::Duration max_connection_age_grace = absl::InfiniteDuration();
  // A PING is sent on an HTTP/2 connection that has received nothing for keepalive_time and has open streams
  // (or keepalive_without_calls is true). The connection is closed if nothing arrives within
  // keepalive_timeout after that.
  absl::Duration keepalive_time = absl::Seconds(60);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  bool keepalive_without_calls = false;

  // A body or an answer may take `transfer_grace` and the time that its bytes need at this rate. A client
  // that is slower is disconnected.
  int64_t min_bytes_per_second = 256 << 10;
  absl::Duration transfer_grace = absl::Seconds(10);
};

// `max_connection_age`, changed by up to a tenth at random: connections that were made together do not end
// together.
absl::Duration SpreadAge(const HttpLimits& limits);

// `idle_timeout`, lengthened at random by up to `idle_spread`, for the same reason. Never shorter, because a
// proxy has to know how long it may keep a connection.
absl::Duration SpreadIdle(const HttpLimits& limits);

}  // namespace saccade::server
