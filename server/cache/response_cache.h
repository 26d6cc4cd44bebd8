// An LRU cache of answers to equal requests, bounded in bytes in total and per model.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/cache/cache_key.h"
#include "server/core/tensor_call.h"

namespace saccade::server {

class CachedAnswers;

// Thread-safe.
class ResponseCache {
 public:
  // `max_bytes` bounds all answers together, including an estimate of the bookkeeping per entry.
  // `between_holds` is for tests. It is called without the lock whenever a thread has released it between two
  // parts of what it drops.
  explicit ResponseCache(int64_t max_bytes, std::function<void()> between_holds = nullptr)
      : max_bytes_(max_bytes), between_holds_(std::move(between_holds)) {}
  // REQUIRES: all CachedAnswers have been destroyed.
  ~ResponseCache() = default;
  ResponseCache(const ResponseCache&) = delete;
  ResponseCache& operator=(const ResponseCache&) = delete;

  // Returns the cache of one model version, which may use up to `max_bytes` of the total; 0 means all of it.
  // The ResponseCache must outlive the result.
  std::unique_ptr<CachedAnswers> ForModel(int64_t max_bytes);

  int64_t bytes() const;
  int64_t answers() const;

 private:
  friend class CachedAnswers;

  struct Entry;
  using Entries = std::list<Entry>;
  struct Entry {
    CachedAnswers* model;
    CacheKey key;
    // A copy that owns its tensors' bytes.
    std::shared_ptr<const TensorAnswer> answer;
    int64_t bytes;
    // Position in the LRU list of the model.
    std::list<Entries::iterator>::iterator of_model;
  };

  // Maximum number of answers that are dropped during one hold of the lock, because the network's threads
  // wait for it.
  static constexpr size_t kMaxDrops = 1000;

  // Removes the entry from all indexes and moves it to `dropped`, which the caller destroys after releasing
  // the lock.
  void Drop(Entries::iterator entry, Entries& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BetweenHolds() const {
    if (between_holds_ != nullptr) between_holds_();
  }

  const int64_t max_bytes_;
  const std::function<void()> between_holds_;
  mutable absl::Mutex mutex_;
  // Most recently used first.
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The cached answers of one version of a model while it is loaded. Thread-safe.
class CachedAnswers {
 public:
  // Calls Close().
  ~CachedAnswers() { Close(); }
  CachedAnswers(const CachedAnswers&) = delete;
  CachedAnswers& operator=(const CachedAnswers&) = delete;

  // Returns the cached answer, if any, and marks it as used. Its tensors refer to the cached bytes and keep
  // them alive.
  std::optional<TensorAnswer> Find(const CacheKey& key);

  // Caches a copy of the answer, evicting as many old ones as necessary. Replaces an answer with fewer
  // outputs; does nothing if the key has one with as many, if the answer exceeds the bound, or after Close().
  void Keep(const CacheKey& key, const TensorAnswer& answer);

  // Drops all answers; later calls of Keep() do nothing. Called when the version is unloaded. Idempotent.
  // Releases the lock of the cache between parts of them.
  void Close();

 private:
  friend class ResponseCache;
  CachedAnswers(ResponseCache* cache, int64_t max_bytes) : cache_(*cache), max_bytes_(max_bytes) {}

  // Keeps the only entry of `made`, whose place is the only element of `place`, unless Keep() should do
  // nothing. Returns false if there is no room after kMaxDrops answers were dropped.
  bool TryKeep(ResponseCache::Entries& made, std::list<ResponseCache::Entries::iterator>& place,
               ResponseCache::Entries& dropped);

  ResponseCache& cache_;
  const int64_t max_bytes_;
  // This version's entries, most recently used first, as in the list of the cache.
  std::list<ResponseCache::Entries::iterator> order_ ABSL_GUARDED_BY(cache_.mutex_);
  std::unordered_map<CacheKey, ResponseCache::Entries::iterator, CacheKeyHash> by_key_
      ABSL_GUARDED_BY(cache_.mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(cache_.mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(cache_.mutex_) = false;
};

}  // namespace saccade::server
