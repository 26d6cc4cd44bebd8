// saccade_bench_kernels [--filter TEXT] [--threads N] [--seconds S] [--json FILE]
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/common/bench.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/sao/sao_bench.h"

int main(int argc, char** argv) {
  saccade::kernels::BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value != nullptr && flag == "--filter") {
      options.filter = value;
    } else if (value != nullptr && flag == "--json") {
      options.json = value;
    } else if (value != nullptr && flag == "--threads" && std::atoi(value) > 0) {
      at::set_num_threads(std::atoi(value));
    } else if (value != nullptr && flag == "--seconds" && std::atof(value) > 0) {
      options.seconds_per_case = std::atof(value);
    } else {
      std::fprintf(stderr,
                   "unexpected argument '%s'\n"
                   "usage: %s [--filter TEXT] [--threads N] [--seconds S] [--json FILE]\n",
                   argv[i], argv[0]);
      return 2;
    }
    ++i;
  }
  const at::NoGradGuard no_grad;
  std::vector<saccade::kernels::BenchCase> cases;
  saccade::kernels::AddSaoBenchmarks(&cases);
  const std::vector<std::string> context = {
      "instruction set: " + std::string(CpuIsaName(saccade::kernels::BestCpuIsa())),
      "threads: " + std::to_string(at::get_num_threads())};
  return saccade::kernels::RunBenchmarks(cases, context, options) ? 0 : 1;
}
