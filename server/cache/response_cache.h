// Answers kept for equal requests: bounded in bytes, over all models and of each; what was not asked for the
// longest time goes first.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
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
  // How much all answers may take together, with what it takes to find them.
  explicit ResponseCache(int64_t most_bytes) : most_bytes_(most_bytes) {}
  // REQUIRES: all CachedAnswers are gone.
  ~ResponseCache() = default;
  ResponseCache(const ResponseCache&) = delete;
  ResponseCache& operator=(const ResponseCache&) = delete;

  // A version's, which may take so much of it; 0 is all. The cache must outlive it.
  std::unique_ptr<CachedAnswers> ForModel(int64_t most_bytes);

  int64_t bytes() const;
  int64_t answers() const;

 private:
  friend class CachedAnswers;

  struct Entry;
  using Entries = std::list<Entry>;
  struct Entry {
    CachedAnswers* model;
    CacheKey key;
    // The tensors' bytes belong to the entry alone, whatever they were cut out of.
    std::shared_ptr<const TensorAnswer> answer;
    int64_t bytes;
    // Where it stands among its model's.
    std::list<Entries::iterator>::iterator of_model;
  };

  // Moves it to `dropped`, which is to be destroyed without the lock.
  void Drop(Entries::iterator entry, Entries& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t most_bytes_;
  mutable absl::Mutex mutex_;
  // The one asked for last comes first.
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What is kept of one version of a model while it is loaded. Thread-safe.
class CachedAnswers {
 public:
  // Closes.
  ~CachedAnswers() { Close(); }
  CachedAnswers(const CachedAnswers&) = delete;
  CachedAnswers& operator=(const CachedAnswers&) = delete;

  // The answer's tensors refer to what is kept, and keep it for as long as they live.
  std::optional<TensorAnswer> Find(const CacheKey& key);

  // Keeps a copy, in place of as many old ones as it needs, unless it is too large or there is one already.
  void Keep(const CacheKey& key, const TensorAnswer& answer);

  // Drops everything, and keeps nothing more: the version is unloaded. Idempotent.
  void Close();

 private:
  friend class ResponseCache;
  CachedAnswers(ResponseCache* cache, int64_t most_bytes) : cache_(*cache), most_bytes_(most_bytes) {}

  ResponseCache& cache_;
  const int64_t most_bytes_;
  // All of these under the cache's lock; the order is that of the cache.
  std::list<ResponseCache::Entries::iterator> order_ ABSL_GUARDED_BY(cache_.mutex_);
  std::unordered_map<CacheKey, ResponseCache::Entries::iterator, CacheKeyHash> by_key_
      ABSL_GUARDED_BY(cache_.mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(cache_.mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(cache_.mutex_) = false;
};

}  // namespace saccade::server
