// Reports the operations of absl::Mutex and absl::Notification to ThreadSanitizer. The distributions' Abseil
// is built without instrumentation, so its locks are invisible and everything they guard looks like a race.
// In a program of the tsan preset these definitions take precedence over the shared library's; each reports
// its operation and calls the original.
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "cmake/tsan/real.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

// Abseil's own graph of lock orders has a lock that is invisible as well. ThreadSanitizer looks for such
// cycles itself.
[[maybe_unused]] static const bool kNoGraph = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

// `kind` and `name` are the parts of the mangled name before and after the namespace.
#define REAL(type, kind, name) static const auto real = saccade::tsan::Real<type>(kind "4absl7debian3" name)

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  REAL(void (*)(Mutex*), "_ZN", "5Mutex4LockEv");
  real(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  REAL(void (*)(Mutex*), "_ZN", "5Mutex6UnlockEv");
  __tsan_release(this);
  real(this);
}

void Mutex::ReaderLock() {
  REAL(void (*)(Mutex*), "_ZN", "5Mutex10ReaderLockEv");
  real(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  REAL(void (*)(Mutex*), "_ZN", "5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  real(this);
}

bool Mutex::TryLock() {
  REAL(bool (*)(Mutex*), "_ZN", "5Mutex7TryLockEv");
  const bool locked = real(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::LockWhen(const Condition& condition) {
  REAL(void (*)(Mutex*, const Condition&), "_ZN", "5Mutex8LockWhenERKNS0_9ConditionE");
  real(this, condition);
  __tsan_acquire(this);
}

void Mutex::Await(const Condition& condition) {
  REAL(void (*)(Mutex*, const Condition&), "_ZN", "5Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  real(this, condition);
  __tsan_acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  REAL(bool (*)(Mutex*, const Condition&, Duration), "_ZN",
       "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  __tsan_release(this);
  const bool holds = real(this, condition, timeout);
  __tsan_acquire(this);
  return holds;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  REAL(bool (*)(Mutex*, const Condition&, Time), "_ZN",
       "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  __tsan_release(this);
  const bool holds = real(this, condition, deadline);
  __tsan_acquire(this);
  return holds;
}

void CondVar::Wait(Mutex* mutex) {
  REAL(void (*)(CondVar*, Mutex*), "_ZN", "7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  real(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  REAL(bool (*)(CondVar*, Mutex*, Duration), "_ZN", "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool timed_out = real(this, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  REAL(bool (*)(CondVar*, Mutex*, Time), "_ZN", "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool timed_out = real(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

// Conditions are evaluated with the mutex held, but inside the library, by the thread that unlocks it after
// Unlock() has reported the release.
bool Condition::Eval() const {
  REAL(bool (*)(const Condition*), "_ZNK", "9Condition4EvalEv");
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  const bool holds = real(this);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  return holds;
}

// A wait that finds the notification given takes no lock.
void Notification::Notify() {
  REAL(void (*)(Notification*), "_ZN", "12Notification6NotifyEv");
  __tsan_release(this);
  real(this);
}

void Notification::WaitForNotification() const {
  REAL(void (*)(const Notification*), "_ZNK", "12Notification19WaitForNotificationEv");
  real(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  REAL(bool (*)(const Notification*, Duration), "_ZNK",
       "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = real(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
