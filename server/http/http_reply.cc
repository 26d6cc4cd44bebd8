#include "server/http/http_reply.h"

#include <atomic>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"

namespace saccade::server {
namespace {

// Smaller bodies are not worth compressing.
constexpr size_t kMinEncoded = 256;

size_t SizeOf(const HttpResponse& response) {
  size_t size = 0;
  for (const absl::string_view piece : BodyPieces(response)) size += piece.size();
  return size;
}

void AddCoding(ContentCoding coding, HttpResponse& response) {
  response.headers.emplace_back("content-encoding", std::string(NameOf(coding)));
  response.headers.emplace_back("vary", "Accept-Encoding");
}

// Leaves the response as it is if there is no memory to compress it.
void EncodeBody(ContentCoding coding, HttpResponse& response) {
  std::string encoded;
  try {
    encoded = Encode(coding, BodyPieces(response));
  } catch (const std::exception&) {
    return;
  }
  response.body = std::move(encoded);
  response.attached.clear();
  AddCoding(coding, response);
}

class Reply {
 public:
  Reply(std::shared_ptr<ReplyPath> path, const ReplyCoding& coding)
      : path_(std::move(path)), coding_(coding) {}
  ~Reply() {
    try {
      Send(HttpError(500, "internal error"));
    } catch (...) {
      // Without memory the client waits for its own timeout.
    }
  }

  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  // If it throws, the destructor responds.
  void Send(HttpResponse response) {
    if (sent_.exchange(true)) return;
    absl::Cleanup unsent = [this] { sent_ = false; };
    SendNow(std::move(response));
    std::move(unsent).Cancel();
  }

 private:
  void SendNow(HttpResponse response) {
    const size_t size = SizeOf(response);
    if (coding_.coding == ContentCoding::kIdentity || !response.compressible || size < kMinEncoded) {
      return ReplyPath::Deliver(path_, std::move(response));
    }
    if (coding_.is_head) {
      response.body.clear();
      response.attached.clear();
      response.has_length = false;
      AddCoding(coding_.coding, response);
      return ReplyPath::Deliver(path_, std::move(response));
    }
    const bool is_large = size > coding_.max_bytes_here;
    if (size <= coding_.max_bytes_on_loop || (!is_large && !path_->IsOnLoop())) {
      EncodeBody(coding_.coding, response);
      return ReplyPath::Deliver(path_, std::move(response));
    }
    WorkPool* const pool = is_large || coding_.short_pool == nullptr ? coding_.pool : coding_.short_pool;
    // Responds if the pool's task throws. The pool destroys tasks that it has no room for.
    const auto rest = std::make_shared<Reply>(path_, ReplyCoding());
    const auto kept = std::make_shared<HttpResponse>(std::move(response));
    const bool submitted = pool->Submit(coding_.client, [rest, kept, path = path_, coding = coding_.coding] {
      if (path->IsCut()) return;
      EncodeBody(coding, *kept);
      rest->Send(std::move(*kept));
    });
    if (!submitted) rest->Send(std::move(*kept));
  }

  const std::shared_ptr<ReplyPath> path_;
  const ReplyCoding coding_;
  std::atomic<bool> sent_{false};
};

}  // namespace

void ReplyPath::Deliver(const std::shared_ptr<ReplyPath>& path, HttpResponse response) {
  {
    absl::MutexLock lock(&path->mutex_);
    if (path->loop_ == nullptr) return;
    if (!path->loop_->IsCurrent()) {
      path->loop_->Post([path, response = std::move(response)]() mutable {
        if (path->responder_ != nullptr) path->responder_->Respond(std::move(response));
      });
      return;
    }
  }
  path->responder_->Respond(std::move(response));
}

bool ReplyPath::IsOnLoop() const {
  absl::MutexLock lock(&mutex_);
  return loop_ != nullptr && loop_->IsCurrent();
}

bool ReplyPath::IsCut() const {
  absl::MutexLock lock(&mutex_);
  return loop_ == nullptr;
}

void ReplyPath::Cut() {
  absl::MutexLock lock(&mutex_);
  loop_ = nullptr;
  responder_ = nullptr;
}

HttpReply MakeReply(std::shared_ptr<ReplyPath> path, const ReplyCoding& coding) {
  const auto reply = std::make_shared<Reply>(std::move(path), coding);
  return [reply](HttpResponse response) { reply->Send(std::move(response)); };
}

std::vector<absl::string_view> BodyPieces(const HttpResponse& response) {
  std::vector<absl::string_view> pieces = {response.body};
  for (const BytePieces& attached : response.attached) {
    for (const std::string_view piece : attached.pieces()) pieces.emplace_back(piece.data(), piece.size());
  }
  return pieces;
}

}  // namespace saccade::server
