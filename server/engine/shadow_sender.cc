#include "server/engine/shadow_sender.h"

#include <pthread.h>

#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "server/core/errors.h"
#include "server/engine/call_share.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

void Submit(ShadowCopies copies) {
  const int max_batch = copies.model->max_batch_size();
  Shares shares;
  int64_t size = 0;
  for (std::shared_ptr<PredictCall>& call : copies.calls) {
    call->MarkPrepared();
    for (auto& share : ShareOut(std::move(call), max_batch)) {
      size += share->size();
      shares.push_back(std::move(share));
    }
  }
  // The shadow version may have been loaded with another configuration, whose largest batch is smaller.
  const bool together = copies.calls.size() > 1 && size <= max_batch;
  SubmitShares(*copies.model, together ? Joined(std::move(shares)) : std::move(shares));
}

void Drop(const ShadowCopies& copies, const absl::Status& why) {
  for (const std::shared_ptr<PredictCall>& call : copies.calls) call->Refuse(why);
}

absl::Status Unloaded() {
  return absl::UnavailableError("the version that the request was copied from was unloaded");
}

}  // namespace

ShadowSender::ShadowSender() : thread_([this] { Run(); }) {}

ShadowSender::~ShadowSender() { Close(); }

void ShadowSender::Send(ShadowCopies copies) {
  absl::Status why;
  try {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      waiting_.push_back(std::move(copies));
      return;
    }
    why = Unloaded();
  } catch (const std::bad_alloc&) {
    why = ErrorOfException();
  }
  Drop(copies, why);
}

void ShadowSender::Close() {
  std::deque<ShadowCopies> left;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    left.swap(waiting_);
  }
  for (const ShadowCopies& copies : left) {
    try {
      Drop(copies, Unloaded());
    } catch (const std::exception& error) {
      // The other calls are answered when they are destroyed.
      Log(LogLevel::kError, "copies for a shadow version were lost",
          {{"error", absl::string_view(error.what())}});
    }
  }
  if (thread_.joinable()) thread_.join();
}

void ShadowSender::Run() {
  pthread_setname_np(pthread_self(), "shadow");
  while (true) {
    ShadowCopies next;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_work = [this]()
                                ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !waiting_.empty(); };
      mutex_.Await(absl::Condition(&has_work));
      if (closed_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      Submit(std::move(next));
    } catch (const std::exception& error) {
      // The calls that were not submitted are answered when they are destroyed.
      Log(LogLevel::kError, "copies for a shadow version were lost",
          {{"error", absl::string_view(error.what())}});
    }
  }
}

}  // namespace saccade::server
