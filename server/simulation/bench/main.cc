// saccade_simulate: batching and admission on virtual time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "server/simulation/bench/curve.h"
#include "server/simulation/bench/sections.h"

namespace saccade::server::simulation {
namespace {

constexpr const char* kHead =
    "# Scheduling\n\n"
    "Written by `./dev bench scheduling`: the daemon's own scheduler on a simulated clock and device, beside "
    "its "
    "peers'\npolicies, with one configuration for all sections (`max_queue_delay` without bound, batches of "
    "up to "
    "256). Each device computes\na batch of b in L(b) = alpha + beta b, alpha 5 ms. The same seeds give the "
    "same "
    "figures on every machine, but for the\nlast section.\n";

struct BenchFlags {
  BenchOptions options;
  std::vector<std::string> only;
  std::string markdown;
};

void Bench(const BenchFlags& flags) {
  Report report;
  for (const BenchSection& section : BenchSections()) {
    const bool wanted = flags.only.empty() ||
                        std::find(flags.only.begin(), flags.only.end(), section.name) != flags.only.end();
    if (wanted) section.add(flags.options, report);
  }
  const std::string text = absl::StrCat(kHead, report.Markdown());
  if (flags.markdown.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    std::ofstream(flags.markdown) << text;
  }
  std::fprintf(stderr, "%d targets missed\n", report.missed());
}

void AddBench(CLI::App& app, BenchFlags& flags) {
  std::vector<std::string> names;
  for (const BenchSection& section : BenchSections()) names.push_back(section.name);
  CLI::App* const bench = app.add_subcommand("bench", "Every figure of docs/benchmarks/scheduling.md");
  bench->add_flag("--quick", flags.options.quick, "A tenth of the requests");
  bench->add_option("--only", flags.only, "Sections, e.g. bursts,grid")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  bench->add_option("--markdown", flags.markdown, "File for the report; without it, standard output");
  bench->add_option("--folder", flags.options.folder, "An existing folder for the plots")
      ->check(CLI::ExistingDirectory)
      ->default_val(".");
  bench->final_callback([&flags] { Bench(flags); });
}

void AddCurve(CLI::App& app, CurveOptions& options) {
  CLI::App* const curve = app.add_subcommand("curve", "One policy at several rates, or its goodput at 99 %");
  curve->add_option("--policy", options.policy, "Whose")
      ->check(CLI::IsMember({"saccade", "eager", "triton", "serving"}))
      ->capture_default_str();
  curve->add_option("--delay", options.delay_ms, "The peers' delay, in ms")->capture_default_str();
  curve->add_option("--instances", options.instances, "Instances of the model")->capture_default_str();
  curve->add_option("--buckets", options.buckets, "Shapes, of one area")->capture_default_str();
  curve->add_flag("--zipf", options.zipf, "Shapes 1 : 1/2 : 1/3 .. instead of equally often");
  curve->add_option("--cv", options.cv, "Coefficient of variation of the gaps")->capture_default_str();
  curve->add_option("--alpha", options.alpha_ms, "ms a batch")->capture_default_str();
  curve->add_option("--beta", options.beta_ms, "ms a picture")->capture_default_str();
  curve->add_option("--deadline", options.deadline_ms, "ms from arrival")->capture_default_str();
  curve->add_option("--jitter", options.jitter, "Of a pass, as a share of it")->capture_default_str();
  curve->add_option("--clients", options.clients, "Among whom it is to be fair")->capture_default_str();
  curve->add_option("--requests", options.requests, "A run's")->capture_default_str();
  curve->add_option("--seeds", options.seeds, "Runs")->capture_default_str();
  curve->add_option("--rate", options.rates, "Requests a second, e.g. 500,1000")->delimiter(',');
  curve->final_callback([&options] { std::fputs(Curve(options).c_str(), stdout); });
}

int Main(int argc, char** argv) {
  CLI::App app("Simulates the daemon's batching, beside its peers' and its bounds");
  app.require_subcommand(1);
  BenchFlags bench;
  AddBench(app, bench);
  CurveOptions curve;
  AddCurve(app, curve);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace
}  // namespace saccade::server::simulation

int main(int argc, char** argv) { return saccade::server::simulation::Main(argc, argv); }
