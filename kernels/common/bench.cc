#include "kernels/common/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

namespace saccade::kernels {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsOf(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Medians in seconds, in the order of `runs`.
std::vector<double> Interleave(const std::vector<std::function<void()>>& runs, double seconds) {
  constexpr int kWarmUps = 3;
  constexpr size_t kLeast = 11;
  for (int i = 0; i < kWarmUps; ++i) {
    for (const auto& run : runs) run();
  }
  std::vector<std::vector<double>> times(runs.size());
  const auto start = Clock::now();
  while (times[0].size() < kLeast || std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    for (size_t i = 0; i < runs.size(); ++i) times[i].push_back(SecondsOf(runs[i]));
  }
  std::vector<double> medians;
  for (auto& each : times) medians.push_back(Median(std::move(each)));
  return medians;
}

struct Result {
  std::string name;
  std::vector<std::pair<std::string, double>> seconds;
  double gb_per_s;
  double copy_gb_per_s;
};

void Print(const Result& result) {
  const double ours = result.seconds.front().second;
  std::printf("%s\n", result.name.c_str());
  for (const auto& [name, seconds] : result.seconds) {
    std::printf("  %-36s %10.4f ms  %6.2fx\n", name.c_str(), seconds * 1e3, seconds / ours);
  }
  std::printf("  %.1f GB/s of the bytes it must move; a copy of the same data reaches %.1f GB/s\n",
              result.gb_per_s, result.copy_gb_per_s);
  std::fflush(stdout);
}

bool WriteJson(const std::string& path, const std::vector<std::string>& context,
               const std::vector<Result>& results) {
  std::ofstream out(path);
  out << "{\"context\": [";
  for (size_t i = 0; i < context.size(); ++i) out << (i ? ", " : "") << '"' << context[i] << '"';
  out << "],\n \"cases\": [";
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    out << (i ? ",\n  " : "\n  ") << "{\"name\": \"" << result.name << "\", \"gb_per_s\": " << result.gb_per_s
        << ", \"copy_gb_per_s\": " << result.copy_gb_per_s << ", \"median_seconds\": {";
    for (size_t c = 0; c < result.seconds.size(); ++c) {
      out << (c ? ", " : "") << '"' << result.seconds[c].first << "\": " << result.seconds[c].second;
    }
    out << "}}";
  }
  out << "\n]}\n";
  out.close();
  if (!out)
    std::fprintf(stderr, "cannot write %s: expected a path to a file that may be created\n", path.c_str());
  return static_cast<bool>(out);
}

}  // namespace

bool RunBenchmarks(const std::vector<BenchCase>& cases, const std::vector<std::string>& context,
                   const BenchOptions& options) {
  for (const auto& line : context) std::printf("%s\n", line.c_str());
  bool ok = true;
  std::vector<Result> results;
  for (const BenchCase& each : cases) {
    if (each.name.find(options.filter) == std::string::npos) continue;
    if (const std::string wrong = each.check(); !wrong.empty()) {
      std::fprintf(stderr, "%s: not timed, as its result is wrong: %s\n", each.name.c_str(), wrong.c_str());
      ok = false;
      continue;
    }
    std::vector<std::function<void()>> runs;
    for (const auto& candidate : each.candidates) runs.push_back(candidate.run);
    runs.push_back(each.copy);
    const std::vector<double> medians = Interleave(runs, options.seconds_per_case);
    Result result{each.name, {}, each.bytes / medians[0] / 1e9, each.copy_bytes / medians.back() / 1e9};
    for (size_t i = 0; i < each.candidates.size(); ++i) {
      result.seconds.emplace_back(each.candidates[i].name, medians[i]);
    }
    Print(result);
    results.push_back(std::move(result));
  }
  return (options.json.empty() || WriteJson(options.json, context, results)) && ok;
}

}  // namespace saccade::kernels
