// gRPC, and gRPC-web, over exchanges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/core/byte_ledger.h"
#include "server/core/clock.h"
#include "server/grpc/call.h"
#include "server/http/caller.h"
#include "server/http/exchange.h"
#include "server/http/head_memory.h"
#include "server/http/origin_policy.h"

namespace saccade::server {

// Whether a request is gRPC's or gRPC-web's, by its content type.
bool IsGrpc(const RequestHead& head);

enum class GrpcForm;

// A rejection, as a gRPC status and as an HTTP status code.
struct GrpcRejection {
  absl::Status status;
  int http_status = 200;
};

class GrpcHandler final : public ExchangeHandler {
 public:
  struct Options {
    // Bytes that one message may have when it is decompressed, in requests and in responses.
    int64_t max_message_bytes = int64_t{64} << 20;
    // A compressed message may become this many times as large as it was sent, and in any case as large as
    // max_growth_bytes. Only what is nearly all zeros compresses more than this: padding, or a tensor that
    // warms up a model, and those are rarely larger than max_growth_bytes.
    int64_t max_compression_ratio = 64;
    int64_t max_growth_bytes = int64_t{16} << 20;
    // A message must arrive at this rate, measured after the grace; else the call ends.
    int64_t min_bytes_per_second = 256 << 10;
    absl::Duration message_grace = absl::Seconds(1);
    // How long a call of a method with one message may wait for that message to begin, and for the
    // half-close; and a call of a method whose messages are small (CallMethod::max_message_bytes) for the
    // message.
    absl::Duration silence_timeout = absl::Seconds(10);
    // Messages are charged here before they are read. Null: not charged.
    ByteLedger* ledger = nullptr;
    // Charges heads as long as their calls are open, with what CallMethod::max_message_bytes says. Null: not
    // charged.
    ChargeRequest charge_request;
    // Null: every call is accepted, and its client is named by its address (CallerAt()).
    ArrivalCheck check_arrival;
    // Checks a call before anything of its body is read; also for methods that do not exist. Null: every call
    // is allowed.
    std::function<absl::Status(absl::string_view path, absl::Span<const absl::string_view> authorizations)>
        check_token;
    // For browsers, which speak gRPC-web.
    OriginPolicy origins;
    // May be null.
    RefusalCounter* refusals = nullptr;
    // Returns the load report (a serialised xds.data.orca.v3.OrcaLoadReport) that is sent in a trailer of
    // calls which ask for it, or of all calls (grpc/load_report.h). Thread-safe. Null: calls have none.
    std::function<std::string()> load_report = nullptr;
    bool always_report_load = false;
    // Turns an error of the handler itself (a refusal by the ledger, ...) into a call's end with details.
    // Null: without details.
    std::function<CallEnd(const absl::Status&)> to_end;
    // The clock of the loops' times; tells when a call arrived. REQUIRES: not null.
    Clock* clock = nullptr;
  };

  // REQUIRES: the paths differ. The ledger and the clock must outlive the calls, and the loops too: a call
  // lives until its handler has finished it.
  GrpcHandler(Options options, std::vector<CallMethod> methods);

  std::unique_ptr<ExchangeReceiver> Begin(Exchange* exchange) override;

 private:
  struct Prepared;

  std::unique_ptr<ExchangeReceiver> Reject(Exchange* exchange, GrpcForm form,
                                           const GrpcRejection& rejection) const;
  // `method` is null for one that does not exist.
  absl::StatusOr<Prepared> Prepare(const RequestHead& head, const Caller& caller,
                                   const CallMethod* method) const;
  absl::Status CheckToken(const RequestHead& head) const;
  void Count(Refusal refusal) const;

  // Shared with the calls, which may outlive this object.
  const std::shared_ptr<const Options> options_;
  absl::flat_hash_map<std::string, CallMethod> methods_;
};

}  // namespace saccade::server
