#include "kernels/bench/bench.h"

#include <algorithm>

namespace saccade::kernels {
namespace {

using AddCasesFunction = void (*)(std::vector<BenchCase>* cases);

// A function-local static, so that it exists before registrations in other translation units run.
std::vector<AddCasesFunction>& Registrations() {
  static std::vector<AddCasesFunction> registrations;
  return registrations;
}

}  // namespace

std::string BenchSize::name() const {
  const std::string side_text = std::to_string(side);
  return std::to_string(batch) + "x" + std::to_string(channels) + "x" + side_text + "x" + side_text;
}

BenchRegistration::BenchRegistration(AddCasesFunction add_cases) { Registrations().push_back(add_cases); }

std::vector<BenchCase> RegisteredBenchmarks() {
  std::vector<BenchCase> cases;
  for (const AddCasesFunction add_cases : Registrations()) add_cases(&cases);
  std::stable_sort(cases.begin(), cases.end(),
                   [](const BenchCase& a, const BenchCase& b) { return a.op < b.op; });
  return cases;
}

double BenchTolerance(std::string_view candidate, at::ScalarType dtype) {
  if (candidate == "saccade") return dtype == at::kFloat ? 1e-6 : 1e-2;
  return dtype == at::kFloat ? 2e-5 : 5e-2;
}

}  // namespace saccade::kernels
