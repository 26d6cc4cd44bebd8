// What a simulated fleet consists of: replicas of one model, and clients that call them.
#pragma once

#include <cstdint>

#include "server/admission/admission.h"
#include "server/batching/batcher_options.h"
#include "server/simulation/linear_latency.h"

namespace saccade::server::simulation {

// How a client chooses a replica.
enum class Balancing {
  // gRPC's round_robin over all replicas.
  kRoundRobin,
  // The better of two random replicas, by the number of requests that they had at their last response to this
  // client and by the client's own open requests there. Neither gRPC nor Envoy do this with load reports.
  kLeastLoaded,
  // gRPC's weighted_round_robin, and Envoy's client-side one: by the requests per second, failures and
  // utilization of the daemon's load reports (ORCA), which are averages over some seconds.
  kWeighted,
  // round_robin over a part of the replicas, a different one for each client.
  kSubset,
};

struct RetryOptions {
  // Attempts for a call, the first included. The defaults are those of the Python client: UNAVAILABLE, and
  // RESOURCE_EXHAUSTED with a hint, are repeated, after the hint or after a pause that doubles.
  int attempts = 4;
  Nanos first_pause = 100 * kMillisecond;
  Nanos max_pause = 5 * kSecond;

  // A careless client: repeats every failure at once, whatever the hint says.
  bool at_once = false;
  // An attempt that takes longer is given up, and repeated at once.
  Nanos attempt_timeout = kNever;

  // gRPC's retryThrottling: a client has so many tokens at most. A failure that could be repeated takes one,
  // a success gives `budget_ratio`, and calls are repeated while more than half are left. 0 for no budget.
  double budget = 100;
  double budget_ratio = 0.1;
};

// A version of the daemon and its model.
struct Build {
  int version = 1;
  // Factor of a pass's time.
  double slow = 1;
  // Share of the passes that fail with INTERNAL.
  double failing = 0;
};

struct FleetOptions {
  int replicas = 1000;
  int zones = 3;
  // A model of some size on two cores. With the default batches of up to 8 a replica answers 23.5 requests
  // per second.
  LinearLatency latency = {.alpha = 20 * kMillisecond, .beta = 40 * kMillisecond};
  // Standard deviation of a pass's time, relative to the time.
  double jitter = 0.05;
  // The shipped defaults.
  BatcherOptions batcher = {};
  AdmissionOptions admission = {};

  // Programs that call, each with its own connections, choice of replicas and budget.
  int clients = 200;
  // Requests per second of all clients together; Poisson.
  double rate = 18'000;
  Nanos deadline = 1500 * kMillisecond;
  Balancing balancing = Balancing::kRoundRobin;
  int subset = 20;
  // Whether all clients have the list of replicas in the same order, as from one file or a list of endpoints.
  // Cluster DNS shuffles its answers (CoreDNS' plugin loadbalance, which Kubernetes' defaults have).
  bool same_order = false;
  RetryOptions retry = {};

  // One way between a client and a replica.
  Nanos network = kMillisecond / 2;
  // A change of the list of replicas reaches each client within this time.
  Nanos discovery = 2 * kSecond;
  // From the start of a pod until it is ready: image, models and warm-up.
  Nanos start_up = 45 * kSecond;
  // How long a replica that was told to end still accepts requests: preStop and the lame duck of the
  // manifests.
  Nanos lame_duck = 15 * kSecond;
  // gRPC's keepalive: how long after a replica vanished a client gives up its connection. The shipped clients
  // send a ping after 10 seconds and wait 5 for its answer.
  Nanos keepalive = 15 * kSecond;
  // Until a replica that vanished without a word leaves the list: Kubernetes' default for a node.
  Nanos unnoticed = 40 * kSecond;

  Nanos until = 120 * kSecond;
  uint64_t seed = 1;
};

}  // namespace saccade::server::simulation
