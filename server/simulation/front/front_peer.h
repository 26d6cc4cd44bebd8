// What the simulated world knows of a client, whichever protocol it speaks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/net/testing/session_pipe.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

class FrontPeer {
 public:
  virtual ~FrontPeer() = default;

  // When it wants to act next; InfiniteFuture() if it has nothing left to do.
  virtual absl::Time next() const = 0;
  virtual void Act(absl::Time now) = 0;
  // Its connection. Null while it has none.
  virtual SessionPipe* pipe() = 0;
  // Whether it keeps to the protocol, sends at once and reads at once.
  virtual bool is_polite() const = 0;
};

// Random bytes.
std::string RandomText(Random& random, int64_t size);

// Delivers the bytes in pieces of random sizes, as a network does, until the connection is lost.
void SendInPieces(SessionPipe& pipe, std::string_view bytes, Random& random);

}  // namespace saccade::server::simulation
