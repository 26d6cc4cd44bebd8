// Times the served SANet beside the same network as eager ATen operators, after checking that they agree:
//   saccade_bench_models [OPTION=VALUE]...        options of sanet; two threads; random weights
// The two take turns in one process, so that what else the machine does touches both. Prints medians.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>

#include "models/model.h"
#include "models/networks/sanet/parameters.h"
#include "models/registry.h"
#include "models/testing/eager_sanet.h"
#include "models/testing/random_weights.h"

namespace saccade::models {
namespace {

constexpr int kThreads = 2;
constexpr int kRounds = 31;

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const size_t equals = option.find('=');
    if (equals == std::string::npos) throw std::runtime_error(option + ": expected OPTION=VALUE");
    options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return options;
}

double Milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

void RequireAgreement(const Model& model, const at::Tensor& expected, const at::Tensor& batch) {
  const std::vector<TaskResult> results = model.Run(batch);
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<float> logits = std::get<Classification>(results[i]).logits;
    const at::Tensor got = at::from_blob(logits.data(), {static_cast<int64_t>(logits.size())}, at::kFloat);
    const at::Tensor row = expected[static_cast<int64_t>(i)];
    const double error = got.sub(row).norm().item<double>() / row.norm().item<double>();
    if (!(error < 1e-4)) throw std::runtime_error("served and eager differ by " + std::to_string(error));
  }
}

void Run(const Options& options) {
  at::set_num_threads(kThreads);
  const SanetPlan plan = MakeSanetPlan(ParseSanetOptions(options));
  const TensorMap tensors = testing::RandomTensors(SanetParameters(plan));
  const std::string path =
      (std::filesystem::temp_directory_path() / ("saccade_bench_models." + std::to_string(getpid())))
          .string();
  testing::SaveSafetensors(tensors, path);
  const std::unique_ptr<Model> model = Load("sanet", options, path);
  std::filesystem::remove(path);

  std::printf("sanet, %d threads, CPU capability %s\n", kThreads, at::get_cpu_capability().c_str());
  std::printf("%5s %12s %12s %8s\n", "batch", "eager ms", "served ms", "ratio");
  for (const int64_t batch_size : {1, 4, 8}) {
    const c10::InferenceMode inference;
    const at::Tensor batch = at::randn({batch_size, 3, plan.options.input_size, plan.options.input_size});
    RequireAgreement(*model, testing::EagerSanet(plan, tensors, batch), batch);
    std::vector<double> eager;
    std::vector<double> served;
    for (int round = 0; round < kRounds; ++round) {
      eager.push_back(Milliseconds([&] { testing::EagerSanet(plan, tensors, batch); }));
      served.push_back(Milliseconds([&] { model->Run(batch); }));
    }
    std::printf("%5ld %12.2f %12.2f %7.2fx\n", static_cast<long>(batch_size), Median(eager), Median(served),
                Median(eager) / Median(served));
  }
}

}  // namespace
}  // namespace saccade::models

int main(int argc, char** argv) {
  try {
    saccade::models::Run(saccade::models::ParseOptions(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_bench_models: %s\n", error.what());
    return 1;
  }
}
