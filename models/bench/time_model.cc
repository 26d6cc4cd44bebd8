// Times a served model for bench_models.py, which requests one pass at a time so that its peers take turns:
//   saccade_time_model ARCHITECTURE WEIGHTS INPUT THREADS [--gpu N] [OPTION=VALUE]...
// INPUT is a batch file (models/tools/batch_file.h). Prints "loaded MILLISECONDS PEAK_BYTES ISA", PEAK_BYTES
// being the memory that loading added at its peak, and ISA "cuda" with --gpu. Then answers lines on stdin:
//   run [ITEMS]   the milliseconds of one pass over all items, or over the first ones, from pixels in the
//                 machine's memory to answers there
//   rate INSTANCES MILLISECONDS
//                 on the CPU: the items per second of so many instances that compute passes over all items at
//                 the same time, for at least so long, each with THREADS threads
//   memory        with --gpu: "ALLOCATED RESERVED", the bytes of the GPU's memory that tensors had at their
//                 peak, and those that LibTorch took for them
//   write PATH    "written", when the answers of the last pass are in that file (models/tools/answers_file.h)
// A Failure is an error. With precision=int8, WEIGHTS are quantized first, on INPUT.
#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/common/cpu_isa.h"
#include "models/api/model.h"
#include "models/api/registry.h"
#include "models/api/target.h"
#include "models/device/separate_cores.h"
#include "models/device/use_threads.h"
#include "models/tools/answers_file.h"
#include "models/tools/batch_file.h"
#include "models/tools/option_arguments.h"
#include "models/tools/process_memory.h"
#include "models/tools/quantize_on_batch.h"

namespace saccade::models {
namespace {

constexpr int kMaxInstances = 64;

class Stopwatch {
 public:
  double Milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void RequireAnswers(const std::vector<TaskResult>& results) {
  for (const TaskResult& result : results) {
    if (const auto* failure = std::get_if<Failure>(&result)) throw std::runtime_error(failure->message);
  }
}

// The first items of a batch, or all of them if `count` is empty.
Batch First(const Batch& batch, const std::string& count) {
  const auto all = static_cast<int>(batch.pixels.size(0));
  const int items = count.empty() ? all : WholeNumber(count).value_or(0);
  if (items < 1 || items > all) {
    throw std::runtime_error("run " + count + ": the input has " + std::to_string(all) +
                             " items; expected 1 to that many");
  }
  return {.pixels = batch.pixels.narrow(0, 0, items),
          .placements = {batch.placements.begin(), batch.placements.begin() + items}};
}

// A loaded model, about which lines are answered.
class Session {
 public:
  Session(std::unique_ptr<Model> model, Batch batch, int threads, std::optional<int> gpu)
      : model_(std::move(model)), batch_(std::move(batch)), threads_(threads), gpu_(gpu) {}

  std::string Answer(const std::string& line) {
    std::istringstream words(line);
    std::string command, argument, second, more;
    words >> command >> argument >> second >> more;
    if (command == "rate" && more.empty()) return Rate(argument, second);
    if (command == "run" && second.empty()) return Run(argument);
    if (line == "memory") return Memory();
    if (command == "write" && !argument.empty() && second.empty()) {
      WriteAnswers(answers_, /*paste=*/false, argument);
      return "written";
    }
    throw std::runtime_error(
        "expected 'run [ITEMS]', 'rate INSTANCES MILLISECONDS', 'memory' or 'write PATH', got '" + line +
        "'");
  }

 private:
  std::string Run(const std::string& items) {
    const Batch part = First(batch_, items);
    const Stopwatch running;
    {
      const SeparateCores own;
      answers_ = model_->Run(part);
    }
    const double took = running.Milliseconds();
    RequireAnswers(answers_);
    return std::to_string(took);
  }

  // The items per second of one instance. The first pass, which allocates, comes before the others begin.
  double RateOfOne(std::barrier<>& begin, double milliseconds) const {
    const auto pass = [this] {
      const SeparateCores own;
      RequireAnswers(model_->Run(batch_));
    };
    try {
      UseThreads(threads_);
      pass();
    } catch (...) {
      begin.arrive_and_drop();
      throw;
    }
    begin.arrive_and_wait();
    const Stopwatch running;
    int64_t items = 0;
    do {
      pass();
      items += batch_.pixels.size(0);
    } while (running.Milliseconds() < milliseconds);
    return 1000 * static_cast<double>(items) / running.Milliseconds();
  }

  std::string Rate(const std::string& instances, const std::string& milliseconds) const {
    const int count = WholeNumber(instances).value_or(0);
    const int time = WholeNumber(milliseconds).value_or(0);
    if (gpu_ || count < 1 || count > kMaxInstances || time < 1) {
      throw std::runtime_error("rate " + instances + " " + milliseconds + ": expected 1 to " +
                               std::to_string(kMaxInstances) +
                               " instances and a number of milliseconds, on the CPU");
    }
    std::barrier begin(count);
    std::vector<std::future<double>> rates;
    try {
      while (std::ssize(rates) < count)
        rates.push_back(
            std::async(std::launch::async, [this, &begin, time] { return RateOfOne(begin, time); }));
    } catch (const std::system_error&) {
      // The system has no thread left. Those that were started wait for the others.
      for (auto i = std::ssize(rates); i < count; ++i) begin.arrive_and_drop();
      throw;
    }
    // All end before the first error is thrown, as they use the barrier.
    for (const std::future<double>& rate : rates) rate.wait();
    double sum = 0;
    for (std::future<double>& rate : rates) sum += rate.get();
    return std::to_string(sum);
  }

  std::string Memory() const {
    if (!gpu_) throw std::runtime_error("'memory' asks for a GPU's; expected --gpu N on the command line");
    const auto gpu = static_cast<c10::DeviceIndex>(*gpu_);
    const auto stats = c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(gpu);
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return std::to_string(stats.allocated_bytes[kAll].peak) + " " +
           std::to_string(stats.reserved_bytes[kAll].peak);
  }

  const std::unique_ptr<Model> model_;
  const Batch batch_;
  const int threads_;
  const std::optional<int> gpu_;
  std::vector<TaskResult> answers_;  // of the last pass
};

void Serve(int argc, char** argv) {
  if (argc < 5) {
    throw std::runtime_error("expected ARCHITECTURE WEIGHTS INPUT THREADS [--gpu N] [OPTION=VALUE]...");
  }
  const int threads = std::stoi(argv[4]);
  at::set_num_threads(threads);
  int first_option = 5;
  const std::optional<int> gpu = GpuArgument(argc, argv, first_option);
  const Options options = OptionArguments(argc, argv, first_option);
  Batch batch = ReadBatch(argv[3]);
  std::string weights = argv[2];
  // Load() says that a GPU does not compute in int8.
  if (PrecisionOf(options) == Precision::kInt8 && !gpu) {
    const std::string quantized = weights + ".int8";
    QuantizeOnBatch(argv[1], options, weights, batch, quantized);
    weights = quantized;
  }
  // The peak counts from here, without the memory of LibTorch itself.
  std::ofstream("/proc/self/clear_refs") << "5";
  const int64_t before = StatusBytes("VmRSS");
  const Stopwatch loading;
  auto model = Load(argv[1], options, weights, {}, gpu);
  std::cout << "loaded " << loading.Milliseconds() << " " << StatusBytes("VmHWM") - before << " "
            << (gpu ? "cuda" : kernels::CpuIsaName(kernels::BestCpuIsa())) << std::endl;

  Session session(std::move(model), std::move(batch), threads, gpu);
  for (std::string line; std::getline(std::cin, line);) std::cout << session.Answer(line) << std::endl;
}

}  // namespace
}  // namespace saccade::models

int main(int argc, char** argv) {
  try {
    saccade::models::Serve(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_time_model: %s\n", error.what());
    return 1;
  }
}
