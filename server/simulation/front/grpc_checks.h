// What must hold of the clients of gRPC over HTTP/2 in the simulated world.
#pragma once

#include "server/simulation/front/client_facts.h"
#include "server/simulation/front/front_world.h"
#include "server/simulation/front/scripted_peer.h"

namespace saccade::server::simulation {

// Checks what the client has seen, and adds it to `result`.
void CheckGrpc(const ScriptedPeer& peer, const ClientFacts& facts, FrontResult& result,
               const OnViolation& violate);

}  // namespace saccade::server::simulation
