#include "server/cache/response_cache.h"

#include <algorithm>
#include <new>
#include <utility>

namespace saccade::server {
namespace {

// Alignment of each tensor, because the next step of an ensemble may read it in place.
constexpr size_t kAlignment = 64;

// Approximate overhead of lists, tables and the allocator.
constexpr int64_t kEntryBytes = 512;
constexpr int64_t kTensorBytes = 128;

size_t Aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

int64_t BytesOf(const TensorAnswer& answer) {
  auto bytes = kEntryBytes + static_cast<int64_t>(answer.model.size());
  for (const Tensor& tensor : answer.outputs) {
    bytes += kTensorBytes + static_cast<int64_t>(Aligned(tensor.data.size()) + sizeof(Tensor) +
                                                 tensor.name.size() + tensor.shape.size() * sizeof(int64_t));
  }
  return bytes;
}

struct FreeAligned {
  void operator()(char* bytes) const { ::operator delete[](bytes, std::align_val_t{kAlignment}); }
};

// Owns a copy of an answer together with its bytes. The tensors have no owner, because a reference to this
// object would be a cycle.
struct Kept {
  explicit Kept(const TensorAnswer& from) {
    size_t size = 0;
    for (const Tensor& tensor : from.outputs) size += Aligned(tensor.data.size());
    bytes.reset(static_cast<char*>(::operator new[](size, std::align_val_t{kAlignment})));
    answer.model = from.model;
    answer.version = from.version;
    char* to = bytes.get();
    for (const Tensor& tensor : from.outputs) {
      tensor.data.CopyTo(to);
      answer.outputs.push_back({.name = tensor.name,
                                .type = tensor.type,
                                .shape = tensor.shape,
                                .data = BytePieces({to, tensor.data.size()})});
      to += Aligned(tensor.data.size());
    }
  }

  std::unique_ptr<char[], FreeAligned> bytes;
  TensorAnswer answer;
};

std::shared_ptr<const TensorAnswer> CopyOf(const TensorAnswer& answer) {
  auto kept = std::make_shared<const Kept>(answer);
  const TensorAnswer* const copy = &kept->answer;
  return {std::move(kept), copy};
}

TensorAnswer Referring(const std::shared_ptr<const TensorAnswer>& kept) {
  TensorAnswer answer{.model = kept->model, .version = kept->version, .outputs = {}};
  answer.outputs.reserve(kept->outputs.size());
  for (const Tensor& tensor : kept->outputs) {
    answer.outputs.push_back(
        {.name = tensor.name, .type = tensor.type, .shape = tensor.shape, .data = tensor.data.KeptBy(kept)});
  }
  return answer;
}

}  // namespace

std::unique_ptr<CachedAnswers> ResponseCache::ForModel(int64_t max_bytes) {
  const int64_t max = max_bytes == 0 ? max_bytes_ : std::min(max_bytes, max_bytes_);
  return std::unique_ptr<CachedAnswers>(new CachedAnswers(this, max));
}

int64_t ResponseCache::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

int64_t ResponseCache::answers() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(entries_.size());
}

void ResponseCache::Drop(Entries::iterator entry, Entries& dropped) {
  CachedAnswers& model = *entry->model;
  model.cache_.mutex_.AssertHeld();
  model.by_key_.erase(entry->key);
  model.order_.erase(entry->of_model);
  model.bytes_ -= entry->bytes;
  bytes_ -= entry->bytes;
  dropped.splice(dropped.end(), entries_, entry);
}

std::optional<TensorAnswer> CachedAnswers::Find(const CacheKey& key) {
  std::shared_ptr<const TensorAnswer> kept;
  {
    absl::MutexLock lock(&cache_.mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return std::nullopt;
    const auto entry = found->second;
    cache_.entries_.splice(cache_.entries_.begin(), cache_.entries_, entry);
    order_.splice(order_.begin(), order_, entry->of_model);
    kept = entry->answer;
  }
  return Referring(kept);
}

void CachedAnswers::Keep(const CacheKey& key, const TensorAnswer& answer) {
  const int64_t bytes = BytesOf(answer);
  if (bytes > max_bytes_) return;
  // Whatever needs memory is made first, so that without memory nothing has changed.
  ResponseCache::Entries made;
  made.push_front({this, key, CopyOf(answer), bytes, {}});
  std::list<ResponseCache::Entries::iterator> place;
  place.push_front(made.begin());
  made.front().of_model = place.begin();
  for (;;) {
    // Destroyed without the lock.
    ResponseCache::Entries dropped;
    if (TryKeep(made, place, dropped)) return;
    cache_.BetweenHolds();
  }
}

bool CachedAnswers::TryKeep(ResponseCache::Entries& made, std::list<ResponseCache::Entries::iterator>& place,
                            ResponseCache::Entries& dropped) {
  const CacheKey& key = made.front().key;
  const int64_t bytes = made.front().bytes;
  absl::MutexLock lock(&cache_.mutex_);
  if (closed_) return true;
  if (const auto present = by_key_.find(key); present != by_key_.end()) {
    // If equal requests were computed concurrently, the first answer is kept.
    if (present->second->answer->outputs.size() >= made.front().answer->outputs.size()) return true;
    cache_.Drop(present->second, dropped);
  }
  const auto may_drop = [&] { return dropped.size() < ResponseCache::kMaxDrops; };
  while (bytes > max_bytes_ - bytes_ && may_drop()) cache_.Drop(order_.back(), dropped);
  while (bytes > cache_.max_bytes_ - cache_.bytes_ && may_drop()) {
    cache_.Drop(std::prev(cache_.entries_.end()), dropped);
  }
  if (bytes > max_bytes_ - bytes_ || bytes > cache_.max_bytes_ - cache_.bytes_) return false;
  by_key_.emplace(key, made.begin());
  cache_.entries_.splice(cache_.entries_.begin(), made);
  order_.splice(order_.begin(), place);
  bytes_ += bytes;
  cache_.bytes_ += bytes;
  return true;
}

void CachedAnswers::Close() {
  for (bool more = true; more;) {
    // Destroyed without the lock.
    ResponseCache::Entries dropped;
    {
      absl::MutexLock lock(&cache_.mutex_);
      closed_ = true;
      while (!order_.empty() && dropped.size() < ResponseCache::kMaxDrops)
        cache_.Drop(order_.back(), dropped);
      more = !order_.empty();
    }
    if (more) cache_.BetweenHolds();
  }
}

}  // namespace saccade::server
