// What must hold of the clients of HTTP/1.1 in the simulated world.
#pragma once

#include <array>
#include <cstddef>

#include "server/simulation/front/client_facts.h"
#include "server/simulation/front/http1_peer.h"

namespace saccade::server::simulation {

// What clients of HTTP/1.1 have done and seen.
struct Http1Counts {
  // Clients, by Http1Behaviour.
  std::array<int, kHttp1Behaviours> clients = {};

  // The following counts are of polite clients alone.

  // Requests that have ended, and how: as one of the following four.
  int requests = 0;
  int answered = 0;
  // By the ledger.
  int refused = 0;
  // By the service, as drawn.
  int failed = 0;
  // Behind an answer that closed the connection.
  int unprocessed = 0;

  // Requests that were answered with what they should be, by what they had in them.
  int pipelined = 0;
  int chunked = 0;
  int continued = 0;
  int heads = 0;
  int streams = 0;
  // Answers after the drain had begun.
  int after_drain = 0;
  // Requests for which the ledger is charged little (Http1Request::is_small), and those of them that it
  // refused.
  int small = 0;
  int small_refused = 0;
  // Connections that were ended between requests, and those that were made in place of an ended one.
  int idle_ends = 0;
  int reconnects = 0;

  // The following counts are of the other clients.

  // 408 for clients that stall, 400 for those that send garbage.
  int timed_out = 0;
  int malformed = 0;

  int clients_of(Http1Behaviour behaviour) const { return clients[static_cast<size_t>(behaviour)]; }
  void Add(const Http1Counts& more);
};

// Checks what the client has seen, and adds it to `counts`.
void CheckHttp1(const Http1Peer& peer, const ClientFacts& facts, Http1Counts* counts,
                const OnViolation& violate);

}  // namespace saccade::server::simulation
