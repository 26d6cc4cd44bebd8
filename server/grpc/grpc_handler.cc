#include "server/grpc/grpc_handler.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/core/errors.h"
#include "server/grpc/call_start.h"
#include "server/grpc/grpc_exchange.h"
#include "server/grpc/grpc_response.h"
#include "server/grpc/grpc_web.h"
#include "server/http/head_memory.h"

namespace saccade::server {
namespace {

// Receives the rest of an exchange that was answered at its beginning, and drops it.
class Answered final : public ExchangeReceiver {
 public:
  void OnBody(absl::string_view /*bytes*/) override {}
  void OnBodyEnd() override {}
  void OnWritten() override {}
  bool OnShutdown() override { return true; }
  void OnOver(bool /*answered*/) override {}
};

// The exchange's share of a call.
class CallReceiver final : public ExchangeReceiver {
 public:
  explicit CallReceiver(std::shared_ptr<GrpcCall> call) : call_(std::move(call)) {}

  void OnBody(absl::string_view bytes) override { call_->OnBody(bytes); }
  void OnBodyEnd() override { call_->OnBodyEnd(); }
  void OnWritten() override { call_->OnWritten(); }
  bool OnShutdown() override { return call_->OnShutdown(); }
  void OnOver(bool /*answered*/) override { call_->OnOver(); }

 private:
  const std::shared_ptr<GrpcCall> call_;
};

absl::string_view ContentTypeOf(const RequestHead& head) {
  return FindHeader(head.headers, "content-type").value_or("");
}

// Whether the request is of a kind that can be a call.
std::optional<GrpcRejection> CheckForm(const RequestHead& head, std::optional<GrpcForm> form) {
  if (head.method != "POST") {
    return GrpcRejection{absl::UnimplementedError(absl::StrCat("the method of a gRPC request is ",
                                                               Shortened(head.method), ", expected POST")),
                         405};
  }
  if (!form) {
    return GrpcRejection{absl::UnimplementedError(
                             absl::StrCat("the content type '", Shortened(ContentTypeOf(head)),
                                          "' is not served; expected application/grpc, application/grpc-web "
                                          "or application/grpc-web-text, with or without +proto")),
                         415};
  }
  if (*form == GrpcForm::kGrpc && head.version == HttpVersion::kHttp1) {
    return GrpcRejection{absl::UnimplementedError("gRPC needs HTTP/2, the request came over HTTP/1; use "
                                                  "HTTP/2, or gRPC-web (application/grpc-web)"),
                         505};
  }
  return std::nullopt;
}

// gRPC's servers in other languages say the same.
absl::Status UnknownMethod(absl::string_view path,
                           const absl::flat_hash_map<std::string, CallMethod>& methods) {
  const size_t slash = path.rfind('/');
  if (slash == 0 || slash == absl::string_view::npos) {
    return absl::UnimplementedError(
        absl::StrCat("malformed method name: \"", Shortened(path), "\"; expected /package.Service/Method"));
  }
  const absl::string_view service = path.substr(1, slash - 1);
  for (const auto& [known, method] : methods) {
    if (absl::StartsWith(known, path.substr(0, slash + 1))) {
      return absl::UnimplementedError(
          absl::StrCat("unknown method ", Shortened(path.substr(slash + 1)), " for service ", service));
    }
  }
  return absl::UnimplementedError(absl::StrCat("unknown service ", Shortened(service)));
}

std::unique_ptr<ExchangeReceiver> Answer(Exchange* exchange, const HttpResponse& response) {
  HttpHeaders headers = response.headers;
  headers.emplace_back("content-type", response.content_type);
  headers.emplace_back("content-length", absl::StrCat(response.body.size()));
  exchange->SendHead(response.status, std::move(headers));
  const auto body = std::make_shared<std::string>(response.body);
  if (!body->empty()) exchange->SendBody(BytePieces(*body, body));
  exchange->End({});
  return std::make_unique<Answered>();
}

}  // namespace

bool IsGrpc(const RequestHead& head) {
  return absl::StartsWithIgnoreCase(ContentTypeOf(head), "application/grpc");
}

GrpcHandler::GrpcHandler(Options options, std::vector<CallMethod> methods)
    : options_(std::make_shared<const Options>(std::move(options))) {
  for (CallMethod& method : methods) {
    CallMethod& kept = methods_[method.path];
    kept = std::move(method);
  }
}

struct GrpcHandler::Prepared {
  GrpcCall::Setup setup;
  std::shared_ptr<CallHandler> handler;
};

std::unique_ptr<ExchangeReceiver> GrpcHandler::Begin(Exchange* exchange) {
  const RequestHead& head = exchange->head();
  const auto form = FormOf(ContentTypeOf(head));
  const auto caller = CheckArrival(options_->check_arrival, head, exchange->peer());
  if (!caller.ok()) return Reject(exchange, form.value_or(GrpcForm::kGrpc), {caller.status()});
  // Browsers name the page that they ask for.
  if (form != GrpcForm::kGrpc || FindHeader(head.headers, "origin").has_value()) {
    if (const auto foreign = CheckOrigin(options_->origins, head, exchange->peer())) {
      Count(Refusal::kHost);
      return Answer(exchange, *foreign);
    }
  }
  const auto rejection = CheckForm(head, form);
  if (rejection) return Reject(exchange, form.value_or(GrpcForm::kGrpc), *rejection);
  const auto found = methods_.find(head.path);
  const CallMethod* const method = found == methods_.end() ? nullptr : &found->second;
  RequestCharge charge = ChargeHead(options_->charge_request, caller->client, head,
                                    method == nullptr ? 0 : method->max_message_bytes);
  if (!charge.memory.ok()) {
    Count(charge.reason);
    return Reject(exchange, *form, {charge.memory.status()});
  }
  auto prepared = Prepare(head, *caller, method);
  if (!prepared.ok()) return Reject(exchange, *form, {prepared.status()});
  prepared->setup.form = *form;
  prepared->setup.memory = *std::move(charge.memory);
  prepared->setup.max_client_wait = charge.max_client_wait;
  const auto call = std::make_shared<GrpcCall>(std::move(prepared->setup), exchange);
  auto receiver = std::make_unique<CallReceiver>(call);
  call->Begin(std::move(prepared->handler));
  return receiver;
}

std::unique_ptr<ExchangeReceiver> GrpcHandler::Reject(Exchange* exchange, GrpcForm form,
                                                      const GrpcRejection& rejection) const {
  const absl::Status& status = rejection.status;
  GrpcResponse(form).SendEnd(exchange,
                             options_->to_end != nullptr ? options_->to_end(status) : CallEnd{status},
                             rejection.http_status);
  return std::make_unique<Answered>();
}

absl::StatusOr<GrpcHandler::Prepared> GrpcHandler::Prepare(const RequestHead& head, const Caller& caller,
                                                           const CallMethod* method) const {
  if (absl::Status allowed = CheckToken(head); !allowed.ok()) return allowed;
  if (method == nullptr) return UnknownMethod(head.path, methods_);
  auto encoding = ReadMessageEncoding(head);
  if (!encoding.ok()) return encoding.status();
  auto start = ReadCallStart(head, caller, options_->clock->Now());
  if (!start.ok()) return start.status();
  Prepared prepared{.setup = {.options = options_,
                              .start = std::make_shared<const CallStart>(*std::move(start)),
                              .encoding = *encoding,
                              .one_message = method->one_message,
                              .charges_answers = method->charges_answers,
                              .max_message_bytes = method->max_message_bytes,
                              .max_growth_bytes = method->max_growth_bytes},
                    .handler = nullptr};
  try {
    prepared.handler = method->make();
  } catch (...) {
    return absl::InternalError("the server failed to begin the call because of an error of its own");
  }
  return prepared;
}

absl::Status GrpcHandler::CheckToken(const RequestHead& head) const {
  if (options_->check_token == nullptr) return absl::OkStatus();
  std::vector<absl::string_view> authorizations;
  for (const auto& [name, value] : head.headers) {
    if (name == "authorization") authorizations.push_back(value);
  }
  const absl::Status allowed = options_->check_token(head.path, authorizations);
  if (absl::IsUnauthenticated(allowed)) Count(Refusal::kUnauthenticated);
  return allowed;
}

void GrpcHandler::Count(Refusal refusal) const {
  if (options_->refusals != nullptr) options_->refusals->Count(refusal);
}

}  // namespace saccade::server
