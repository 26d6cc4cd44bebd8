// Where the calls of probes are charged, so that health is answered while the ledger of bytes is full.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/admission/call_reserve.h"
#include "server/core/byte_ledger.h"
#include "server/http/exchange.h"
#include "server/http/head_memory.h"

namespace saccade::server {

enum class HealthCall {
  kNone,
  kCheck,  // one question, one answer
  kWatch,  // open as long as the client wants
};

// What a path of gRPC or of REST asks for. List of gRPC's health service is none: it names the models.
HealthCall HealthCallOf(absl::string_view path);

// Checks are charged to the ledger, like all requests, and to the reserve when the ledger refuses them.
// Watches are charged to the reserve, which has slots of their own for them, and to the ledger when these
// are taken. Thread-safe.
class HealthReserve {
 public:
  struct Options {
    // --max-health-watches and --max-health-watches-per-client.
    int64_t max_watches = 4096;
    int64_t max_watches_per_client = 512;
  };
  // Places for checks over gRPC that the ledger refuses, and as many for those over REST, which are complete
  // when they are charged. A check holds its slot until its answer is written, because it takes memory until
  // then, but not for long (kMaxCheckWait).
  static constexpr int64_t kMaxHealthChecks = 1024;
  static constexpr int64_t kMaxHealthChecksPerClient = 64;
  // A check that holds such a slot is ended if its client does not read its answer for so long, or, over
  // gRPC, sends nothing for so long.
  static constexpr absl::Duration kMaxCheckWait = absl::Seconds(1);
  // A call with few headers holds about 10 KiB.
  static constexpr int64_t kHealthCallBytes = 16 << 10;

  // `ledger` must outlive this object, and this object the charges.
  HealthReserve(ByteLedger* ledger, const Options& options);

  // Charges any open request, see ChargeRequest.
  RequestCharge Charge(absl::string_view client, const RequestHead& head, int64_t bytes);

  // Bytes that are charged to the reserve, and not to the ledger.
  int64_t bytes() const { return grpc_checks_.bytes() + rest_checks_.bytes() + watches_.bytes(); }

 private:
  RequestCharge ChargeWatch(absl::string_view client, int64_t bytes);

  ByteLedger* const ledger_;
  CallReserve grpc_checks_;
  CallReserve rest_checks_;
  CallReserve watches_;
};

}  // namespace saccade::server
