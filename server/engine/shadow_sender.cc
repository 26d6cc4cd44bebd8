#include "server/engine/shadow_sender.h"

#include <pthread.h>

#include <utility>

#include "absl/status/status.h"
#include "server/engine/call_share.h"

namespace saccade::server {
namespace {

void Submit(ShadowCopy copy) {
  copy.call->MarkPrepared();
  SubmitShares(*copy.model, ShareOut(std::move(copy.call), copy.model->max_batch_size()));
}

void Drop(const ShadowCopy& copy) {
  copy.call->Refuse(absl::UnavailableError("the version that the request was copied from was unloaded"));
}

}  // namespace

ShadowSender::ShadowSender() : thread_([this] { Run(); }) {}

ShadowSender::~ShadowSender() { Close(); }

void ShadowSender::Send(ShadowCopy copy) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      copies_.push_back(std::move(copy));
      return;
    }
  }
  Drop(copy);
}

void ShadowSender::Close() {
  std::deque<ShadowCopy> left;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    left.swap(copies_);
  }
  for (const ShadowCopy& copy : left) Drop(copy);
  if (thread_.joinable()) thread_.join();
}

void ShadowSender::Run() {
  pthread_setname_np(pthread_self(), "shadow");
  while (true) {
    ShadowCopy next;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_work = [this]()
                                ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !copies_.empty(); };
      mutex_.Await(absl::Condition(&has_work));
      if (closed_) return;
      next = std::move(copies_.front());
      copies_.pop_front();
    }
    Submit(std::move(next));
  }
}

}  // namespace saccade::server
