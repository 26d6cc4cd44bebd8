#include "kernels/emulator/emulator.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/emulator/faults.h"
#include "kernels/emulator/fibre.h"

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace saccade::emulator {
namespace {

constexpr int kWarpSize = 32;

enum class State { kReady, kAtBarrier, kInShuffle, kExited };

struct AsyncCopy {
  void* to;
  const void* from;
  size_t bytes, read;
};

// State of one emulated CUDA thread.
struct Thread {
  std::unique_ptr<Fibre> fibre;
  dim3 index;
  int number = 0;
  State state = State::kReady;
  std::source_location where;
  uint32_t mask = 0;
  uint64_t value = 0;
  int source_lane = 0;
  // Arguments of Gather(), which is implemented as a shuffle of the whole warp. gather_bytes == 0: not in a
  // gather.
  const void* gather_from = nullptr;
  void* gather_to = nullptr;
  size_t gather_bytes = 0;
  // Copies that are not there yet: those without a group, and the groups in their order.
  std::vector<AsyncCopy> issued;
  std::deque<std::vector<AsyncCopy>> groups;

  // A group without copies needs no wait.
  bool HasCopiesUnderWay() const {
    return !issued.empty() ||
           std::any_of(groups.begin(), groups.end(), [](const auto& group) { return !group.empty(); });
  }
};

// Fibres that no launch uses. Their stacks are large, so that making new ones for each launch would take
// longer than most launches.
thread_local std::vector<std::unique_ptr<Fibre>> spare_fibres;

std::unique_ptr<Fibre> TakeFibre() {
  if (spare_fibres.empty()) return std::make_unique<Fibre>();
  std::unique_ptr<Fibre> fibre = std::move(spare_fibres.back());
  spare_fibres.pop_back();
  return fibre;
}

std::string Place(const Thread& thread) {
  std::ostringstream text;
  text << "thread " << thread.number;
  if (thread.state == State::kExited) {
    text << " has exited";
  } else {
    text << (thread.state == State::kAtBarrier ? " waits at __syncthreads, " : " waits in a shuffle, ")
         << thread.where.file_name() << ":" << thread.where.line();
  }
  return text.str();
}

bool SamePlace(const Thread& a, const Thread& b) {
  return a.state == b.state && a.where.line() == b.where.line() && a.where.column() == b.where.column() &&
         std::string_view(a.where.file_name()) == b.where.file_name();
}

// Runs the blocks of a grid one after another, each with the same fibres.
class Block {
 public:
  Block(const LaunchOptions& options, const std::function<void()>& body)
      : options_(options), body_(body), random_(options.seed) {
    const unsigned count = options.block.x * options.block.y * options.block.z;
    if (count == 0 || count > 1024) throw std::logic_error("a block should have 1 to 1024 threads");
    for (unsigned i = 0; i < count; ++i) {
      threads_.push_back(std::make_unique<Thread>());
      threads_[i]->fibre = TakeFibre();
      threads_[i]->number = static_cast<int>(i);
      threads_[i]->index = dim3(i % options.block.x, i / options.block.x % options.block.y,
                                i / (options.block.x * options.block.y));
    }
  }
  ~Block() {
    for (auto& thread : threads_) spare_fibres.push_back(std::move(thread->fibre));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void Run(dim3 index);
  Thread& current() { return *current_; }
  void* Shared(const void* key, size_t bytes);
  void* DynamicShared() { return Shared(this, options_.shared_bytes); }

  // Suspends the running thread's fibre until the scheduler marks it ready again.
  void Wait(State state, const std::source_location& where) {
    current_->state = state;
    current_->where = where;
    current_->fibre->Suspend();
  }

 private:
  static void Enter(void* block);
  // A warp that runs only when no other can, until the next barrier; sometimes none.
  void ChooseLaggard() { laggard_ = static_cast<int>(random_() % (threads_.size() / kWarpSize + 1)); }
  bool ReleaseShuffles();
  static void GatherAll(const std::vector<Thread*>& warp);
  bool ReleaseBarrier();
  [[noreturn]] void Stuck() const;

  const LaunchOptions& options_;
  const std::function<void()>& body_;
  std::mt19937_64 random_;
  int laggard_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* current_ = nullptr;
  std::exception_ptr error_;
  std::map<const void*, std::vector<std::byte>> shared_;
};

thread_local Block* running = nullptr;

void Block::Enter(void* block) {
  auto* self = static_cast<Block*>(block);
  try {
    self->body_();
    // Beside a fault, only what the kernel computes shall tell that something is wrong.
    if (!HasFault() && self->current_->HasCopiesUnderWay()) {
      throw std::logic_error("thread " + std::to_string(self->current_->number) +
                             " has exited before its asynchronous copies were there");
    }
  } catch (...) {
    self->error_ = std::current_exception();
  }
  self->current_->state = State::kExited;
}

void Block::Run(dim3 index) {
  shared_.clear();
  for (auto& thread : threads_) {
    thread->state = State::kReady;
    thread->issued.clear();
    thread->groups.clear();
    thread->fibre->Prepare(&Block::Enter, this);
  }
  ChooseLaggard();
  std::vector<Thread*> order, late;
  for (;;) {
    order.clear();
    late.clear();
    bool all_exited = true;
    for (auto& thread : threads_) {
      all_exited &= thread->state == State::kExited;
      if (thread->state != State::kReady) continue;
      (thread->number / kWarpSize == laggard_ ? late : order).push_back(thread.get());
    }
    if (all_exited) return;
    if (order.empty()) {
      if (ReleaseShuffles()) continue;
      order.swap(late);
    }
    if (order.empty()) {
      if (!ReleaseBarrier()) Stuck();
      ChooseLaggard();
      continue;
    }
    std::shuffle(order.begin(), order.end(), random_);
    for (Thread* thread : order) {
      current_ = thread;
      threadIdx = thread->index;
      blockIdx = index;
      blockDim = options_.block;
      gridDim = options_.grid;
      thread->fibre->Resume();
      if (error_ != nullptr) std::rethrow_exception(error_);
    }
  }
}

// Completes a shuffle once every lane in its mask has reached it, with the same mask and at the same source
// location. Returns true if a shuffle was completed.
bool Block::ReleaseShuffles() {
  bool released = false;
  for (size_t first = 0; first < threads_.size(); ++first) {
    const Thread& leader = *threads_[first];
    if (leader.state != State::kInShuffle) continue;
    const size_t warp = first / kWarpSize * kWarpSize;
    std::vector<Thread*> members;
    bool complete = true;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((leader.mask >> lane & 1) == 0) continue;
      complete &= warp + lane < threads_.size();
      if (!complete) break;
      Thread* member = threads_[warp + lane].get();
      complete = SamePlace(*member, leader) && member->mask == leader.mask;
      members.push_back(member);
    }
    if (!complete) continue;
    if (leader.gather_bytes != 0) GatherAll(members);
    std::vector<uint64_t> received;
    for (const Thread* member : members) {
      const bool named = leader.mask >> member->source_lane & 1;
      // On the device the value of a lane outside the mask is undefined; all ones make its use visible.
      received.push_back(named ? threads_[warp + member->source_lane]->value : ~uint64_t{0});
    }
    for (size_t i = 0; i < members.size(); ++i) {
      members[i]->value = received[i];
      members[i]->state = State::kReady;
    }
    released = true;
  }
  return released;
}

void Block::GatherAll(const std::vector<Thread*>& warp) {
  for (Thread* to : warp) {
    auto* at = static_cast<std::byte*>(to->gather_to);
    for (const Thread* from : warp) {
      std::memcpy(at, from->gather_from, to->gather_bytes);
      at += to->gather_bytes;
    }
  }
}

bool Block::ReleaseBarrier() {
  for (const auto& thread : threads_) {
    if (thread->state != State::kAtBarrier || !SamePlace(*thread, *threads_.front())) return false;
  }
  for (auto& thread : threads_) thread->state = State::kReady;
  return true;
}

void Block::Stuck() const {
  const Thread* first = nullptr;
  for (const auto& thread : threads_) {
    if (thread->state == State::kExited) continue;
    if (first == nullptr) first = thread.get();
  }
  std::string message = "deadlock in an emulated block: " + Place(*first);
  for (const auto& thread : threads_) {
    if (SamePlace(*thread, *first) && thread->mask == first->mask) continue;
    throw std::logic_error(message + ", while " + Place(*thread));
  }
  throw std::logic_error(message + ", whose mask names lanes that the block does not have");
}

void* Block::Shared(const void* key, size_t bytes) {
  auto& memory = shared_[key];
  // All bits set is a NaN in every floating-point type.
  if (memory.empty()) memory.assign(bytes, std::byte{0xff});
  if (memory.size() != bytes)
    throw std::logic_error(
        "a shared array was requested with two different sizes; expected one size per kernel");
  return memory.data();
}

// The block that runs on this thread, while this lives.
class Running {
 public:
  explicit Running(Block& block) { running = &block; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { running = nullptr; }
};

}  // namespace

void Launch(const LaunchOptions& options, const std::function<void()>& body) {
  Block block(options, body);
  std::vector<dim3> blocks;
  for (unsigned z = 0; z < options.grid.z; ++z) {
    for (unsigned y = 0; y < options.grid.y; ++y) {
      for (unsigned x = 0; x < options.grid.x; ++x) blocks.emplace_back(x, y, z);
    }
  }
  std::mt19937_64 random(options.seed);
  std::shuffle(blocks.begin(), blocks.end(), random);
  const Running is_running(block);
  for (const dim3& index : blocks) block.Run(index);
}

void SyncThreads(const std::source_location& where) {
  if (IsFaulty(Primitive::kBarrier, where)) return;
  running->current().mask = 0;
  running->Wait(State::kAtBarrier, where);
}

void SyncWarp(uint32_t mask, const std::source_location& where) {
  if (IsFaulty(Primitive::kBarrier, where)) return;
  Thread& thread = running->current();
  thread.mask = mask;
  thread.source_lane = Lane();
  running->Wait(State::kInShuffle, where);
}

uint64_t Shuffle(uint32_t mask, uint64_t value, int source_lane, const std::source_location& where) {
  Thread& thread = running->current();
  thread.mask = mask;
  thread.value = value;
  thread.source_lane = source_lane;
  if (thread.gather_bytes == 0 && IsFaulty(Primitive::kShuffle, where))
    thread.source_lane = (source_lane + 1) % kWarpSize;
  running->Wait(State::kInShuffle, where);
  return thread.value;
}

void Gather(const void* mine, size_t bytes, void* all, const std::source_location& where) {
  Thread& thread = running->current();
  thread.gather_from = mine;
  thread.gather_to = all;
  thread.gather_bytes = bytes;
  Shuffle(0xffffffffu, 0, 0, where);
  thread.gather_bytes = 0;
  if (IsFaulty(Primitive::kGather, where)) {
    auto* const first = static_cast<std::byte*>(all);
    std::swap_ranges(first, first + bytes, first + bytes);
  }
}

void CopyAsync(void* to, const void* from, size_t bytes, size_t read) {
  RequireAligned(to, bytes);
  RequireAligned(from, bytes);
  std::memset(to, 0xff, bytes);
  running->current().issued.push_back({to, from, bytes, read});
}

void CommitCopies(const std::source_location& where) {
  if (IsFaulty(Primitive::kCommit, where)) return;
  Thread& thread = running->current();
  thread.groups.push_back(std::move(thread.issued));
  thread.issued.clear();
}

void WaitForCopies(size_t latest, const std::source_location& where) {
  if (IsFaulty(Primitive::kWait, where)) return;
  Thread& thread = running->current();
  while (thread.groups.size() > latest) {
    for (const AsyncCopy& copy : thread.groups.front()) {
      std::memcpy(copy.to, copy.from, copy.read);
      std::memset(static_cast<std::byte*>(copy.to) + copy.read, 0, copy.bytes - copy.read);
    }
    thread.groups.pop_front();
  }
}

void RequireAligned(const void* address, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
  throw std::logic_error("an access of " + std::to_string(bytes) +
                         " bytes at an address that is not a multiple of its size");
}

int Lane() { return running->current().number % kWarpSize; }

void* SharedMemory(const void* key, size_t bytes) { return running->Shared(key, bytes); }

void* DynamicSharedMemory() { return running->DynamicShared(); }

}  // namespace saccade::emulator
