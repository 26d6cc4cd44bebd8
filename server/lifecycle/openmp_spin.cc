#include "server/lifecycle/openmp_spin.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/core/usable_cores.h"

namespace saccade::server {
namespace {

using Time = std::chrono::steady_clock;

constexpr int kWakeUps = 32;
// Long enough for an idle core to halt, as between the loops of a network.
constexpr std::chrono::microseconds kSleep(200);
constexpr int kRounds = 20'000;
constexpr double kWakeUpsToSpin = 10;
constexpr absl::Duration kMinSpinning = absl::Microseconds(150);
constexpr absl::Duration kMaxSpinning = absl::Microseconds(250);

// libgomp's loop: it looks at the value and gives the core's other hardware thread a moment.
void SpinWhileZero(const std::atomic<int>& value, int rounds) {
  for (int i = 0; i < rounds && value.load(std::memory_order_relaxed) == 0; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
  }
}

absl::Duration MeasureRound() {
  const std::atomic<int> never = 0;
  std::vector<absl::Duration> took;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Time::now();
    SpinWhileZero(never, kRounds);
    took.push_back(absl::FromChrono(Time::now() - begin) / kRounds);
  }
  return *std::min_element(took.begin(), took.end());
}

// libgomp sleeps on a futex as well.
void Futex(std::atomic<int32_t>& word, int operation, int32_t value) {
  static_assert(sizeof(word) == sizeof(int32_t));
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

// Wakes one thread again and again.
class Sleeper {
 public:
  Sleeper() : thread_([this] { Run(); }) {}
  ~Sleeper() {
    Wake(kEnd);
    thread_.join();
  }

  absl::Duration WakeUp() {
    std::this_thread::sleep_for(kSleep);
    const auto begin = Time::now();
    const int32_t seen = woken_.load() + 1;
    Wake(seen);
    while (woken_.load() != seen) Futex(woken_, FUTEX_WAIT, seen - 1);
    return absl::FromChrono(woken_at_ - begin);
  }

 private:
  static constexpr int32_t kEnd = -1;

  void Wake(int32_t turn) {
    turn_.store(turn);
    Futex(turn_, FUTEX_WAKE, 1);
  }

  void Run() {
    for (int32_t done = 0; turn_.load() != kEnd;) {
      if (turn_.load() == done) {
        Futex(turn_, FUTEX_WAIT, done);
        continue;
      }
      woken_at_ = Time::now();
      done = turn_.load();
      if (done == kEnd) return;
      woken_.store(done);
      Futex(woken_, FUTEX_WAKE, 1);
    }
  }

  std::atomic<int32_t> turn_ = 0;
  std::atomic<int32_t> woken_ = 0;
  // Written before woken_, read after it.
  Time::time_point woken_at_;
  std::thread thread_;
};

// The shorter ones are the machine's own; other processes make the rest longer.
absl::Duration MeasureWakeUp() {
  Sleeper sleeper;
  std::vector<absl::Duration> took;
  for (int i = 0; i < kWakeUps; ++i) took.push_back(sleeper.WakeUp());
  std::sort(took.begin(), took.end());
  return took[took.size() / 4];
}

}  // namespace

std::optional<WaitingCosts> MeasureWaiting() {
  if (UsableCores(ReadCoreLimits(AllowedProcessors())) < 2) return std::nullopt;
  try {
    return WaitingCosts{.wake_up = MeasureWakeUp(), .round = MeasureRound()};
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

int SpinRounds(const WaitingCosts& costs) {
  const absl::Duration spinning = std::clamp(kWakeUpsToSpin * costs.wake_up, kMinSpinning, kMaxSpinning);
  const double rounds = absl::FDivDuration(spinning, std::max(costs.round, absl::Nanoseconds(1)));
  return static_cast<int>(std::lround(rounds));
}

std::string ToText(const WaitingCosts& costs) {
  return absl::StrFormat("a wake-up takes %.1f us, a round of spinning %.1f ns",
                         absl::ToDoubleMicroseconds(costs.wake_up), absl::ToDoubleNanoseconds(costs.round));
}

}  // namespace saccade::server
