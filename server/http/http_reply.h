// Carries a handler's response from any thread to its request, if the client still waits for it.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/http/content_coding.h"
#include "server/http/http_message.h"
#include "server/net/loop.h"
#include "server/net/work_pool.h"

namespace saccade::server {

// Sends the response to the client. Implemented by the call, on its loop's thread.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Respond(HttpResponse response) = 0;
};

// Delivers responses from any thread to the responder on its loop's thread. Thread-safe, except for Cut().
class ReplyPath {
 public:
  // `loop` and `responder` must stay until Cut().
  ReplyPath(Loop* loop, Responder* responder) : loop_(loop), responder_(responder) {}

  // Calls Respond() on the loop's thread: before it returns if this is the loop's thread, otherwise in a
  // posted task. Does nothing after Cut().
  static void Deliver(const std::shared_ptr<ReplyPath>& path, HttpResponse response);
  // Whether this is the loop's thread. False after Cut(). Thread-safe.
  bool IsOnLoop() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Loop's thread only.
  void Cut() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether nobody waits for the response any more. Thread-safe.
  bool IsCut() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  Loop* loop_ ABSL_GUARDED_BY(mutex_);
  // Loop's thread only.
  Responder* responder_;
};

// How a response is compressed, as its request determines it.
struct ReplyCoding {
  ContentCoding coding = ContentCoding::kIdentity;
  // Larger responses are compressed on `pool`.
  size_t max_bytes_here = 0;
  // Responses that were made on the loop, and are larger, are compressed on a pool.
  size_t max_bytes_on_loop = 0;
  WorkPool* pool = nullptr;
  // For responses up to `max_bytes_here`. Null: `pool` compresses them too.
  WorkPool* short_pool = nullptr;
  // As in Caller.
  std::string client = {};
  // Whether the request is a HEAD. Its response is not compressed, and says no length where it would be: only
  // compressing tells that (RFC 9110, 9.3.2).
  bool is_head = false;
};

// The reply to one request. Its first call counts; later ones do nothing. If all copies are destroyed without
// a call, the response is a 500.
HttpReply MakeReply(std::shared_ptr<ReplyPath> path, const ReplyCoding& coding);

// The pieces of the response's body, in order. They point into `response`.
std::vector<absl::string_view> BodyPieces(const HttpResponse& response);

}  // namespace saccade::server
