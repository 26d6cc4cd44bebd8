// The requests that the simulated clients of HTTP/1.1 make.
#pragma once

#include <cstdint>
#include <string>

#include "server/simulation/random.h"

namespace saccade::server::simulation {

enum class Http1Kind {
  kEcho,       // POST /echo: answered with its body
  kSized,      // GET /sized/BYTES: answered with SizedText(BYTES)
  kHead,       // HEAD /sized/BYTES: answered with the head of that
  kWebUnary,   // a call of gRPC-web with one message, which comes back
  kWebStream,  // one with several, each of which comes back: the answer streams
};
inline constexpr int kHttp1Kinds = 5;

inline bool IsGrpcWeb(Http1Kind kind) {
  return kind == Http1Kind::kWebUnary || kind == Http1Kind::kWebStream;
}

// Bodies and answers of at most so many bytes are small. An answer of so many is not charged to the ledger.
inline constexpr int64_t kMaxSmallBody = 1000;

struct Http1Request {
  Http1Kind kind = Http1Kind::kSized;
  // The body comes in chunks.
  bool is_chunked = false;
  // The head asks for a 100 before the body is sent.
  bool expects_continue = false;
  // The head says that the connection ends with the answer.
  bool closes = false;
  // All that the ledger can be charged for it is its head and a small body.
  bool is_small = false;
  // The bytes on the wire.
  std::string head;
  std::string body;
  // What the answer has to carry: a body of HTTP, or the messages of a call with their prefixes.
  std::string expected;
};

// A request of random kind, size and framing.
Http1Request DrawHttp1Request(Random& random);

// What the service answers when it is asked for so many bytes.
std::string SizedText(int64_t bytes);

// `body` in chunks of random sizes, some with extensions, and trailers at the end of some.
std::string InChunks(const std::string& body, Random& random);

}  // namespace saccade::server::simulation
