// saccade_bench_kernels: times the operators and their peers (docs/benchmarks/README.md).
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/headeronly/version.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "kernels/bench/bench_run.h"
#include "kernels/common/cpu_isa.h"

namespace saccade::kernels {
namespace {

constexpr char kUsage[] =
    "usage: saccade_bench_kernels [--filter TEXT] [--threads N] [--seconds S] [--json FILE] [--markdown "
    "FILE]\n"
    "                             [--list]\n"
    "  --filter    run only cases whose op/variant/shape contains TEXT\n"
    "  --threads   number of LibTorch threads (default: LibTorch's own choice)\n"
    "  --seconds   minimum time per candidate (default: 1)\n"
    "  --list      list the cases without running them\n";

struct Flags {
  std::string filter, json, markdown;
  bool list = false;
  BenchOptions options;
};

// Returns false and prints an error if an argument is not understood.
bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--list") {
      flags->list = true;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : nullptr;
    if (value != nullptr && flag == "--filter") {
      flags->filter = value;
    } else if (value != nullptr && flag == "--json") {
      flags->json = value;
    } else if (value != nullptr && flag == "--markdown") {
      flags->markdown = value;
    } else if (value != nullptr && flag == "--threads" && std::atoi(value) > 0) {
      at::set_num_threads(std::atoi(value));
    } else if (value != nullptr && flag == "--seconds" && std::atof(value) > 0) {
      flags->options.seconds_per_candidate = std::atof(value);
    } else {
      std::fprintf(stderr, "unexpected argument '%s%s%s'\n%s", flag.c_str(), value ? " " : "",
                   value ? value : "", kUsage);
      return false;
    }
  }
  return true;
}

std::string CpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// The words after the program's name, each after a space, as /proc has them.
std::string Arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words;
  std::getline(file, words, '\0');
  words.clear();
  for (std::string word; std::getline(file, word, '\0');) words += " " + word;
  return words;
}

// Today, as "2026-11-21".
std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[sizeof "0000-00-00"];
  std::strftime(text, sizeof text, "%F", &local);
  return text;
}

BenchContext Context() {
  const char* spins = std::getenv("GOMP_SPINCOUNT");
  return {{"made by", "`./dev bench kernels" + Arguments() + "`"},
          {"on", Today()},
          {"CPU", CpuModel()},
          {"instruction set", std::string(CpuIsaName(BestCpuIsa()))},
          {"threads", std::to_string(at::get_num_threads())},
          {"OpenMP spins", spins != nullptr ? spins : "libgomp's default"},
          {"LibTorch", TORCH_VERSION}};
}

using Writer = void (*)(const BenchContext&, const std::vector<CaseResult>&, std::ostream&);

bool WriteFile(const std::string& path, Writer write, const std::vector<CaseResult>& results) {
  if (path.empty()) return true;
  std::ofstream out(path);
  write(Context(), results, out);
  out.close();
  if (!out)
    std::fprintf(stderr, "cannot write %s: expected a path where a file can be created\n", path.c_str());
  return static_cast<bool>(out);
}

bool Run(const Flags& flags) {
  if (!flags.list) {
    for (const auto& [what, value] : Context()) std::cout << what << ": " << value << "\n";
  }
  bool ok = true;
  std::vector<CaseResult> results;
  for (const BenchCase& bench : RegisteredBenchmarks()) {
    const std::string name = bench.op + "/" + bench.variant + "/" + bench.shape;
    if (name.find(flags.filter) == std::string::npos) continue;
    if (flags.list) {
      std::cout << name << "\n";
      continue;
    }
    const BenchOutcome outcome = RunBenchmark(bench, flags.options);
    if (!outcome.wrong.empty()) {
      std::cerr << name << ": not timed because a result is wrong: " << outcome.wrong << std::endl;
      ok = false;
      continue;
    }
    PrintCase(outcome.result, std::cout);
    results.push_back(outcome.result);
    // Rewrite the files after every case, so that an interrupted run keeps its results.
    if (!WriteFile(flags.json, WriteJson, results) || !WriteFile(flags.markdown, WriteMarkdown, results))
      return false;
  }
  if (!flags.list && results.empty()) {
    std::cerr << "no case was timed; run with --list to see all cases" << std::endl;
    ok = false;
  }
  return ok;
}

}  // namespace
}  // namespace saccade::kernels

int main(int argc, char** argv) {
  saccade::kernels::Flags flags;
  if (!saccade::kernels::Parse(argc, argv, &flags)) return 2;
  const at::NoGradGuard no_grad;
  try {
    return saccade::kernels::Run(flags) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_bench_kernels: %s\n", error.what());
    return 1;
  }
}
