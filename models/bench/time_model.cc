// Times a served model for bench_models.py, which requests one pass at a time so that its peers take turns:
//   saccade_time_model ARCHITECTURE WEIGHTS INPUT THREADS [OPTION=VALUE]...
// INPUT is a batch file (models/tools/batch_file.h). Prints "loaded MILLISECONDS PEAK_BYTES ISA", PEAK_BYTES
// being the memory that loading added at its peak. Then, for each line "run" on stdin, prints the
// milliseconds of one pass. A Failure is an error. With precision=int8, WEIGHTS are quantized first, on
// INPUT.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "kernels/common/cpu_isa.h"
#include "models/api/model.h"
#include "models/api/registry.h"
#include "models/api/target.h"
#include "models/device/own_cores.h"
#include "models/quantize/quantizer.h"
#include "models/tools/batch_file.h"
#include "models/tools/option_arguments.h"
#include "models/tools/process_memory.h"

namespace saccade::models {
namespace {

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

// Returns the path of the weights in int8, all layers of them, which lies beside `weights`.
std::string Quantized(const std::string& architecture, const Options& options, const std::string& weights,
                      const Batch& batch) {
  const std::string path = weights + ".int8";
  const QuantizeInput input = {
      .architecture = architecture,
      .options = options,
      .labels = {},
      .weights_path = weights,
      .items = batch.placements.size(),
      .run = [&](const Model& model, size_t item) {
        const auto index = static_cast<int64_t>(item);
        return model.Run({.pixels = batch.pixels.narrow(0, index, 1), .placements = {batch.placements[item]}})
            .front();
      }};
  Quantize(input, {.all_layers = true}, path);
  return path;
}

void Serve(int argc, char** argv) {
  if (argc < 5) throw std::runtime_error("expected ARCHITECTURE WEIGHTS INPUT THREADS [OPTION=VALUE]...");
  at::set_num_threads(std::stoi(argv[4]));
  const Options options = OptionArguments(argc, argv, 5);
  const Batch batch = ReadBatch(argv[3]);
  std::string weights = argv[2];
  if (PrecisionOf(options) == Precision::kInt8) weights = Quantized(argv[1], options, weights, batch);
  // The peak counts from here, without the memory of LibTorch itself.
  std::ofstream("/proc/self/clear_refs") << "5";
  const int64_t before = StatusBytes("VmRSS");
  const Stopwatch loading;
  const auto model = Load(argv[1], options, weights);
  std::cout << "loaded " << loading.Milliseconds() << " " << StatusBytes("VmHWM") - before << " "
            << kernels::CpuIsaName(kernels::BestCpuIsa()) << std::endl;

  std::string command;
  while (std::getline(std::cin, command)) {
    if (command != "run") throw std::runtime_error("expected 'run', got '" + command + "'");
    const Stopwatch running;
    std::vector<TaskResult> results;
    {
      const OwnCores own;
      results = model->Run(batch);
    }
    const double took = running.Milliseconds();
    RequireAnswers(results);
    std::cout << took << std::endl;
  }
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
