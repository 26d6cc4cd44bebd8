#include "models/networks/identity/identity.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "models/networks/identity/describe.h"
#include "models/networks/identity/options.h"
#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

using Clock = std::chrono::steady_clock;

// Makes the allocator throw its out-of-memory error, which a network's pass would get too.
void AskForTooMuch() { at::empty({int64_t{1} << 56}, at::kByte).zero_(); }

// Copies a volume and checks that it is finite, in pieces that fit into a core's cache, so that memory is
// read once.
TaskResult GiveBack(std::span<const float> volume, const at::Tensor& shape_of) {
  constexpr size_t kPieceValues = 4096;
  Restoration result{
      .depth = shape_of.size(2), .height = shape_of.size(3), .width = shape_of.size(4), .values = {}};
  result.values.reserve(volume.size());
  for (size_t begin = 0; begin < volume.size(); begin += kPieceValues) {
    const auto piece = volume.subspan(begin, std::min(kPieceValues, volume.size() - begin));
    if (!AllFinite(piece)) return NotFiniteInput();
    result.values.insert(result.values.end(), piece.begin(), piece.end());
  }
  return result;
}

class Identity : public Model {
 public:
  Identity(Description description, const IdentityOptions& options)
      : description_(std::move(description)), options_(options) {}

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const Clock::time_point started = Clock::now();
    const c10::InferenceMode inference;
    CheckBatch(description_, batch);
    const at::Tensor volumes = batch.pixels.contiguous();
    const int64_t items = volumes.size(0);
    const auto size = static_cast<size_t>(volumes.numel() / items);
    if (IsOnBrokenThread())
      throw std::runtime_error("identity: failure triggered by the option broken_thread_file");
    std::vector<TaskResult> results;
    results.reserve(static_cast<size_t>(items));
    for (int64_t i = 0; i < items; ++i) {
      const std::span<const float> volume(volumes.const_data_ptr<float>() + static_cast<size_t>(i) * size,
                                          size);
      Drill(volume[0], items);
      results.push_back(GiveBack(volume, volumes));
    }
    WaitUntil(started + options_.Delay(items));
    return results;
  }

 private:
  void Drill(float first, int64_t items) const {
    // Warm-up items are all zeros and never trigger this.
    if (options_.no_room_above > 0 && items > options_.no_room_above && first != 0) AskForTooMuch();
    if (options_.lose_device_at && LosesDevice(first == options_.lose_device_at)) {
      constexpr int32_t kIllegalAddress = 700;
      throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kIllegalAddress,
                                  "identity: failure triggered by the option lose_device_at");
    }
    if (first == options_.fail_at)
      throw std::runtime_error("identity: failure triggered by the option fail_at");
    if (first == options_.hang_at) Hang();
  }

  // Whether this thread's device is lost: the first thread that is `asked` loses it, for good.
  bool LosesDevice(bool asked) const {
    std::thread::id lost;
    const std::thread::id own = std::this_thread::get_id();
    return (asked && lost_thread_.compare_exchange_strong(lost, own)) || lost_thread_ == own;
  }

  bool IsOnBrokenThread() const {
    if (options_.broken_thread_file.empty()) return false;
    std::error_code unreadable;
    if (!std::filesystem::exists(options_.broken_thread_file, unreadable)) {
      broken_thread_ = std::thread::id();
      return false;
    }
    std::thread::id broken;
    const std::thread::id own = std::this_thread::get_id();
    return broken_thread_.compare_exchange_strong(broken, own) || broken == own;
  }

  void Hang() const {
    if (options_.hang_file.empty()) return std::this_thread::sleep_for(options_.MaxHang());
    const Clock::time_point end = Clock::now() + options_.MaxHang();
    std::error_code unreadable;
    while (Clock::now() < end && std::filesystem::exists(options_.hang_file, unreadable))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  void WaitUntil(Clock::time_point end) const {
    if (!options_.busy) std::this_thread::sleep_until(end);
    while (Clock::now() < end) {
    }
  }

  const Description description_;
  const IdentityOptions options_;
  // No thread while options_.broken_thread_file does not exist.
  mutable std::atomic<std::thread::id> broken_thread_;
  // No thread until the first has lost its device.
  mutable std::atomic<std::thread::id> lost_thread_;
};

}  // namespace

std::unique_ptr<Model> LoadIdentity(const std::string& architecture, const Options& options,
                                    const std::string& /*weights_path*/,
                                    const std::vector<std::string>& labels, const Target& /*target*/) {
  return std::make_unique<Identity>(DescribeIdentity(architecture, options, labels),
                                    ParseIdentityOptions(architecture, options));
}

}  // namespace saccade::models
