// Times a served model for bench_models.py, which requests one pass at a time so that its peers take turns:
//   saccade_time_model ARCHITECTURE WEIGHTS INPUT THREADS [OPTION=VALUE]...
// INPUT is a batch file (models/tools/batch_file.h). Prints "loaded MILLISECONDS PEAK_BYTES ISA", PEAK_BYTES
// being the memory that loading added at its peak. Then, for each line "run" on stdin, prints the
// milliseconds of one pass. A Failure is an error.
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
#include "models/device/own_cores.h"
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

void Serve(int argc, char** argv) {
  if (argc < 5) throw std::runtime_error("expected ARCHITECTURE WEIGHTS INPUT THREADS [OPTION=VALUE]...");
  at::set_num_threads(std::stoi(argv[4]));
  // The peak counts from here, without the memory of LibTorch itself.
  std::ofstream("/proc/self/clear_refs") << "5";
  const int64_t before = StatusBytes("VmRSS");
  const Stopwatch loading;
  const auto model = Load(argv[1], OptionArguments(argc, argv, 5), argv[2]);
  std::cout << "loaded " << loading.Milliseconds() << " " << StatusBytes("VmHWM") - before << " "
            << kernels::CpuIsaName(kernels::BestCpuIsa()) << std::endl;

  const Batch batch = ReadBatch(argv[3]);
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
