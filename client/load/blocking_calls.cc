#include "client/load/blocking_calls.h"

namespace saccade::client {

BlockingCalls::BlockingCalls(int threads, std::function<CallResult(size_t number)> call)
    : call_(std::move(call)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

BlockingCalls::~BlockingCalls() {
  {
    const absl::MutexLock lock(&mutex_);
    over_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

StartCall BlockingCalls::starter() {
  return [this](const LoadCall& call, CallDone done) { Add(call, std::move(done)); };
}

void BlockingCalls::Add(const LoadCall& call, CallDone done) {
  const absl::MutexLock lock(&mutex_);
  waiting_.emplace_back(call.number, std::move(done));
}

void BlockingCalls::Work() {
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return over_ || !waiting_.empty(); };
  while (true) {
    std::pair<size_t, CallDone> next;
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next.second(call_(next.first));
  }
}

}  // namespace saccade::client
