#include "server/http/http_call.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/http/head_memory.h"

namespace saccade::server {
namespace {

// Bytes of a body that the pool decodes before it looks whether the client is still there.
constexpr size_t kDecodedAtOnce = size_t{1} << 20;

// Larger bodies count as parsed though they are not: a handler may copy them, for example into a capture.
constexpr size_t kMaxUnparsed = size_t{1} << 20;

// The rest of a request whose body is complete: it is decoded and handled, on the loop or on a pool.
struct Work {
  std::shared_ptr<const HttpServiceCore> core;
  HttpHandler handler;
  HttpBytesToParse bytes_to_parse;
  // Null if the request has none.
  std::shared_ptr<RequestBody> body;
  std::shared_ptr<HttpRequest> request;
  HttpReply reply;

  // Whether more than `max` bytes are parsed, or may be once the body is decoded.
  bool MayParseMore(size_t max) const {
    if (body == nullptr) return false;
    if (!body->decoded()) return true;
    const absl::string_view bytes = body->bytes();
    if (bytes.size() > std::max(max, kMaxUnparsed)) return true;
    return (bytes_to_parse == nullptr ? bytes.size() : bytes_to_parse(request->headers, bytes)) > max;
  }

  // Runs on the pool for large bodies, or on the one for short bodies. Responds if that has no room.
  static void Submit(Work work, bool is_large) {
    const HttpService::Options& options = work.core->options;
    WorkPool* const pool = is_large || options.short_pool == nullptr ? options.pool : options.short_pool;
    const std::string client = work.request->client;
    const HttpReply reply = work.reply;
    if (pool->Submit(client, [work = std::move(work), is_large]() mutable {
          if (is_large) return work.Run();
          work.RunIfShort();
        })) {
      return;
    }
    HttpResponse busy = HttpError(503, "all threads for such requests are busy; try again");
    busy.headers = {{"Retry-After", "1"}};
    reply(std::move(busy));
  }

  // Decodes what is left of the body, then calls the handler.
  void Run() {
    Guard([this] {
      while (body != nullptr && !body->decoded()) {
        if (!Decode(kDecodedAtOnce)) return;
      }
      Handle();
    });
  }

 private:
  // As Run(), unless the body turns out to be large: then the pool for large bodies goes on.
  void RunIfShort() {
    Guard([this] {
      const size_t max = core->options.max_short_bytes;
      if (body != nullptr && !body->decoded() && !Decode(max)) return;
      if (MayParseMore(max)) return Submit(*this, /*is_large=*/true);
      Handle();
    });
  }

  // Decodes a part of the body; false if the request is over.
  bool Decode(size_t max) {
    if (cancelled()) return false;
    auto refused = body->Decode(max);
    if (!refused) return true;
    if (refused->reason) core->Count(*refused->reason);
    reply(std::move(refused->response));
    return false;
  }

  void Handle() {
    if (cancelled()) return;
    if (body != nullptr) request->body = body->bytes();
    handler(request, reply);
  }

  // Responds if `action` throws.
  void Guard(absl::FunctionRef<void()> action) {
    try {
      action();
    } catch (const std::exception&) {
      // The text of an exception may tell what clients should not know.
      reply(HttpError(500, "internal error"));
    } catch (...) {
      reply(HttpError(500, "internal error"));
    }
  }

  // Whether the client is gone.
  bool cancelled() const { return request->cancellation->cancelled(); }
};

}  // namespace

HttpCall::HttpCall(std::shared_ptr<const HttpServiceCore> core, Exchange* exchange)
    : core_(std::move(core)),
      exchange_(exchange),
      path_(std::make_shared<ReplyPath>(&exchange->loop(), this)),
      begin_(exchange->loop().Now()) {}

void HttpCall::Begin() {
  if (auto refusal = CheckHead()) return Respond(*std::move(refusal));
  if (auto refusal = CheckBody()) return Respond(*std::move(refusal));
  if (auto refusal = CheckBeforeContinue()) return Respond(*std::move(refusal));
  if (exchange_->head().has_body) BeginBody();
}

std::optional<HttpResponse> HttpCall::CheckHead() {
  const RequestHead& head = exchange_->head();
  const HttpService::Options& options = core_->options;
  auto caller = CheckArrival(options.check_arrival, head, exchange_->peer());
  if (!caller.ok()) return options.to_http(caller.status());
  caller_ = *std::move(caller);
  RequestCharge charge = ChargeHead(options.charge_request, caller_.client, head);
  if (!charge.memory.ok()) {
    core_->Count(charge.reason);
    return options.to_http(charge.memory.status());
  }
  memory_ = *std::move(charge.memory);
  max_client_wait_ = charge.max_client_wait;
  if (auto refusal = CheckOrigin(options.origins, head, exchange_->peer())) {
    core_->Count(Refusal::kHost);
    return refusal;
  }
  auto found = core_->routes.Find(head.method, head.path);
  if (std::holds_alternative<HttpResponse>(found)) return std::get<HttpResponse>(std::move(found));
  match_ = std::get<Routes::Match>(std::move(found));
  if (!options.guard) return std::nullopt;
  auto refusal = options.guard(HandledMethod(head.method), match_.route, head.headers);
  if (refusal && refusal->status == 401) core_->Count(Refusal::kUnauthenticated);
  return refusal;
}

std::optional<HttpResponse> HttpCall::CheckBody() {
  const RequestHead& head = exchange_->head();
  const auto named = FindHeader(head.headers, "content-encoding");
  const auto coding = named ? ContentCodingOf(*named) : ContentCoding::kIdentity;
  if (!coding) {
    return HttpError(415, "this Content-Encoding is not known; send gzip, deflate, or the body as it is");
  }
  coding_ = *coding;
  return std::nullopt;
}

std::optional<HttpResponse> HttpCall::CheckBeforeContinue() {
  const RequestHead& head = exchange_->head();
  const bool waits = head.has_body && FindHeader(head.headers, "expect").has_value();
  if (!waits || *match_.check_head == nullptr) return std::nullopt;
  return (*match_.check_head)(*MakeRequest(match_.path_values));
}

void HttpCall::BeginBody() {
  body_ = std::make_shared<RequestBody>(&core_->options, caller_.client, coding_);
  if (const auto length = exchange_->head().content_length) {
    if (auto refused = body_->Announce(*length)) return Refuse(*std::move(refused));
    exchange_->AllowBody(*length);
  }
  body_timer_.emplace(&exchange_->loop().timers(), [this] {
    try {
      ExpectBody();
    } catch (...) {
      SendFailure();
    }
  });
  ExpectBody();
}

// Ends the request if its body comes too slowly; else looks again when it would be.
void HttpCall::ExpectBody() {
  const HttpService::Options& options = core_->options;
  const absl::Time due =
      begin_ + options.body_grace +
      absl::Seconds(static_cast<double>(received_) / static_cast<double>(options.min_bytes_per_second));
  if (exchange_->loop().Now() < due) return body_timer_->Set(due);
  core_->Count(Refusal::kStalledUpload);
  Respond(HttpError(408, "the body did not come to its end in time"));
}

void HttpCall::OnBody(absl::string_view bytes) {
  if (responded_) return;
  received_ += bytes.size();
  if (auto refused = body_->Append(bytes)) return Refuse(*std::move(refused));
  if (exchange_->head().content_length) return;
  if (auto refused = body_->Expand()) return Refuse(*std::move(refused));
  exchange_->AllowBody(body_->allowed());
}

void HttpCall::OnBodyEnd() {
  if (responded_) return;
  if (body_timer_) body_timer_->Cancel();
  Handle();
}

std::shared_ptr<HttpRequest> HttpCall::MakeRequest(std::map<std::string, std::string> path_values) const {
  const RequestHead& head = exchange_->head();
  auto request = std::make_shared<HttpRequest>();
  request->method = head.method;
  request->path = head.path;
  request->query = head.query;
  request->headers = head.headers;
  request->body_owner = body_;
  if (body_ != nullptr && !body_->decoded()) request->compressed_bytes = received_;
  request->path_values = std::move(path_values);
  request->client = caller_.client;
  request->address = caller_.address;
  request->arrival = exchange_->loop().Now();
  request->cancellation = cancellation_;
  return request;
}

void HttpCall::Handle() {
  const HttpService::Options& options = core_->options;
  const auto accepted = FindHeader(exchange_->head().headers, "accept-encoding");
  const ContentCoding coding = accepted ? AcceptedCoding(*accepted) : ContentCoding::kIdentity;
  Work work{core_,
            *match_.handler,
            match_.bytes_to_parse,
            body_,
            MakeRequest(std::move(match_.path_values)),
            MakeReply(path_, {.coding = coding,
                              .max_bytes_here = options.max_short_bytes,
                              .max_bytes_on_loop = options.max_encoded_on_loop,
                              .pool = options.pool,
                              .short_pool = options.short_pool,
                              .client = caller_.client,
                              .is_head = exchange_->head().method == "HEAD"})};
  if (!match_.may_block && !work.MayParseMore(options.max_bytes_on_loop)) return work.Run();
  const bool is_large = work.MayParseMore(options.max_short_bytes) && body_->decoded();
  Work::Submit(std::move(work), match_.may_block || is_large);
}

void HttpCall::Refuse(RequestBody::Refused refused) {
  if (refused.reason) core_->Count(*refused.reason);
  Respond(std::move(refused.response));
}

absl::StatusOr<ByteCharge> HttpCall::ChargeAnswer(const HttpResponse& response) const {
  ByteLedger* const ledger = core_->options.ledger;
  if (ledger == nullptr || response.is_charged || response.body.size() <= kUnchargedAnswerBytes)
    return ByteCharge();
  return ledger->Charge(caller_.client, static_cast<int64_t>(response.body.size()));
}

void HttpCall::Respond(HttpResponse response) {
  if (responded_) return;
  responded_ = true;
  body_timer_.reset();
  body_.reset();
  try {
    Send(std::move(response));
  } catch (...) {
    SendFailure();
  }
}

void HttpCall::SendFailure() {
  responded_ = true;
  try {
    // Within a response nothing else can be said.
    if (!head_sent_) return Send(HttpError(500, "internal error"));
  } catch (...) {
    // Then there is no memory for this response either.
  }
  exchange_->Reset(ExchangeError::kInternal);
}

void HttpCall::ExpectReading() {
  if (max_client_wait_ == absl::InfiniteDuration()) return;
  Loop& loop = exchange_->loop();
  unread_timer_.emplace(&loop.timers(), [this] {
    core_->Count(Refusal::kStalledDownload);
    if (core_->options.refusals != nullptr) core_->options.refusals->CountCut(1);
    exchange_->Reset(ExchangeError::kTooSlow);
  });
  unread_timer_->Set(loop.Now() + max_client_wait_);
}

void HttpCall::Send(HttpResponse response) {
  ExpectReading();
  auto charge = ChargeAnswer(response);
  if (!charge.ok()) {
    core_->Count(Refusal::kBytes);
    response = core_->options.to_http(charge.status());
    charge = ByteCharge();
  }
  struct Sent {
    ByteCharge charge;
    HttpResponse response;
  };
  const auto sent = std::make_shared<const Sent>(Sent{*std::move(charge), std::move(response)});
  const HttpResponse* const kept = &sent->response;
  BytePieces body("", sent);
  for (const absl::string_view piece : BodyPieces(*kept)) body.Add({piece.data(), piece.size()});
  HttpHeaders headers;
  for (const auto& [name, value] : kept->headers) headers.emplace_back(absl::AsciiStrToLower(name), value);
  headers.emplace_back("content-type", kept->content_type);
  if (kept->has_length) headers.emplace_back("content-length", absl::StrCat(body.size()));
  headers.emplace_back("x-content-type-options", "nosniff");
  head_sent_ = true;
  exchange_->SendHead(kept->status, std::move(headers));
  if (exchange_->head().method != "HEAD" && body.size() > 0) exchange_->SendBody(std::move(body));
  exchange_->End({});
}

void HttpCall::OnOver(bool answered) {
  unread_timer_.reset();
  path_->Cut();
  if (!answered) cancellation_->Cancel();
}

}  // namespace saccade::server
