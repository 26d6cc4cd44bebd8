// Fuzzes an HTTP request as received: head, path, chunked and compressed body, and its content as an
// inference request or an extension's JSON. The first byte of the input is the size of the pieces.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "server/http/content_coding.h"
#include "server/http/request_parser.h"
#include "server/http/routes.h"
#include "server/protocols/rest/answer.h"
#include "server/protocols/rest/json.h"
#include "server/protocols/rest/members.h"
#include "server/protocols/rest/request.h"
#include "server/shared_memory/shared_memory.h"
#include "tests/fuzz/costs.h"
#include "tests/fuzz/requests.h"

namespace saccade::fuzz {
namespace {

// Maximum size of a body, of the elements in its JSON, and of a response, in bytes.
constexpr size_t kMax = 1 << 16;

const server::SharedMemory kNoSharing({});

void CheckError(const server::HttpResponse& error) {
  Check(error.status >= 400 && error.status < 600, "an error has an error's status");
  Check(error.body.find("\"error\"") != std::string::npos, "an error says what is wrong");
}

const server::Routes& SomeRoutes() {
  static const server::Routes routes = [] {
    const server::HttpHandler none =
        server::Responding([](const server::HttpRequest&) { return server::HttpResponse(); });
    auto made = server::Routes::Create({{"GET", "/v2/models/stats", none},
                                        {"GET", "/v2/models/{model}", none},
                                        {"POST", "/v2/models/{model}/versions/{version}/infer", none},
                                        {"POST", "/v2/logging", none}});
    Check(made.ok(), "these are routes");
    return *std::move(made);
  }();
  return routes;
}

void CheckPath(const server::RequestHead& head) {
  const auto found = SomeRoutes().Find(head.method, head.path);
  if (const auto* answer = std::get_if<server::HttpResponse>(&found)) {
    Check(answer->status == 200 || answer->status >= 400, "a path is served, or refused");
    return;
  }
  const auto& match = std::get<server::Routes::Match>(found);
  Check(match.handler != nullptr, "a path that is served has a handler");
  for (const auto& [name, value] : match.path_values) Check(!value.empty(), "no part of a path is empty");
}

// Collects the decoded body, like server/http/http_call.cc.
class Body {
 public:
  explicit Body(server::ContentCoding coding) {
    if (coding != server::ContentCoding::kIdentity) decoder_.emplace(coding);
  }

  // Returns false if the body is malformed or too large.
  bool Add(absl::string_view bytes) {
    if (!decoder_) return Append(bytes);
    const absl::Status written =
        decoder_->Write(bytes, [this](absl::string_view decoded) { return Append(decoded); });
    if (!written.ok()) CheckRefusal(written);
    return written.ok() && bytes_.size() <= kMax;
  }

  bool is_whole() const { return !decoder_ || decoder_->Finish().ok(); }
  const std::string& bytes() const { return bytes_; }

 private:
  bool Append(absl::string_view bytes) {
    Check(bytes.size() <= size_t{1} << 20, "what is decoded comes in bounded pieces");
    bytes_.append(bytes.data(), bytes.size());
    return bytes_.size() <= kMax;
  }

  std::optional<server::ContentDecoder> decoder_;
  std::string bytes_;
};

// Returns whether the body is complete.
bool ReadChunks(server::RequestParser& parser, absl::string_view rest, size_t step, Body& body) {
  size_t shown = std::min(step, rest.size());
  bool goes_on = true;
  while (!parser.body_done()) {
    if (shown == 0) return false;
    size_t taken = 0;
    const auto malformed = parser.ReadChunks(
        rest.substr(0, shown),
        [&](absl::string_view bytes) { return (goes_on = body.Add(bytes)) ? bytes.size() : 0; }, &taken);
    if (malformed) CheckError(*malformed);
    if (malformed || !goes_on) return false;
    Check(taken <= shown, "no more is taken than is there");
    rest.remove_prefix(taken);
    shown -= taken;
    if (taken > 0 && shown > 0) continue;
    if (shown == rest.size()) return parser.body_done();
    shown = std::min(rest.size(), shown + step);
  }
  return true;
}

void CheckCall(const server::RestCall& read) {
  size_t elements = 0;
  for (const server::Tensor& input : read.call.inputs) {
    Check(server::CheckBytes(input).ok(), "a tensor has as many bytes as its shape says");
    for (const std::string_view piece : input.data.pieces()) Touch(piece);
    elements += input.data.size();
  }
  Check(elements <= 2 * kMax, "what JSON says takes no more than it may, nor do the bytes behind it");
  server::TensorAnswer answer{.model = "m", .version = 1, .outputs = read.call.inputs};
  const auto told = server::ToRestAnswer(std::move(answer), read.call.id, read.form, kMax);
  if (!told.ok()) {
    Check(absl::IsInvalidArgument(told.status()) || absl::IsResourceExhausted(told.status()),
          "what JSON cannot express, or is too large, is refused");
    return;
  }
  size_t size = told->body.size();
  for (const server::BytePieces& attached : told->attached) size += attached.size();
  Check(size <= kMax, "an answer is no larger than it may be");
}

void CheckRequest(const server::RestBody& body) {
  const auto is_raw = server::IsRawBody(body);
  if (!is_raw.ok()) return CheckRefusal(is_raw.status());
  if (*is_raw) {
    for (const server::DataType type : {server::DataType::kBytes, server::DataType::kFp32}) {
      const auto read = server::ReadRawRequest(body, {{.name = "x", .type = type, .shape = {-1, 2}}}, true);
      if (read.ok()) {
        CheckCall(*read);
      } else {
        CheckRefusal(read.status());
      }
    }
    return;
  }
  const auto read = server::ReadRestRequest(body, kNoSharing, {.max_bytes = kMax});
  if (read.ok()) {
    CheckCall(*read);
  } else {
    CheckRefusal(read.status());
  }
}

// Checks the JSON of log settings, of a load request, and of a region.
void CheckMembers(absl::string_view text) {
  for (const auto& members : {server::ParseMembers(text), server::ParseParameters(text)}) {
    if (!members.ok()) {
      CheckRefusal(members.status());
      continue;
    }
    Check(server::Named(*members).size() == members->size(), "every member has its name");
    Check(members->size() <= 256, "members are bounded");
  }
}

void CheckBody(const server::RequestHead& head, std::string bytes) {
  CheckMembers(bytes);
  const auto json = server::ParseRestJson(bytes, {.max_bytes = kMax});
  if (!json.ok()) CheckRefusal(json.status());
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  CheckRequest({.bytes = *kept,
                .owner = kept,
                .json_length = server::FindHeader(head.headers, server::kJsonLengthHeader)});
}

void ReadRequest(absl::string_view bytes, size_t step) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == absl::string_view::npos) return;
  const server::HttpLimits limits;
  server::RequestParser parser(limits);
  if (const auto malformed = parser.ReadHead(bytes.substr(0, end + 4))) return CheckError(*malformed);
  const server::RequestHead& head = parser.head();
  Check(!head.path.empty(), "a path is never empty");
  CheckPath(head);
  server::AcceptedCoding(server::FindHeader(head.headers, "Accept-Encoding").value_or(""));
  const auto coding =
      server::ContentCodingOf(server::FindHeader(head.headers, "Content-Encoding").value_or("identity"));
  Body body(coding.value_or(server::ContentCoding::kIdentity));
  absl::string_view rest = bytes.substr(end + 4);
  if (parser.chunked()) {
    if (!ReadChunks(parser, rest, step, body)) return;
  } else {
    if (head.content_length.value_or(0) > rest.size()) return;
    for (rest = rest.substr(0, head.content_length.value_or(0)); !rest.empty();) {
      if (!body.Add(rest.substr(0, step))) return;
      rest.remove_prefix(std::min(step, rest.size()));
    }
  }
  if (body.is_whole()) CheckBody(head, body.bytes());
}

}  // namespace
}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const saccade::fuzz::Costs costs(size);
  if (size == 0) return 0;
  saccade::fuzz::ReadRequest({reinterpret_cast<const char*>(data + 1), size - 1},
                             std::max<size_t>(1, data[0]));
  return 0;
}
