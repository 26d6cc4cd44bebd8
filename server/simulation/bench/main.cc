// saccade_simulate: batching and admission on virtual time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
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

int Bench(const BenchFlags& flags) {
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
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Simulates the daemon's batching, beside its peers' and its bounds");
  app.require_subcommand(1);

  BenchFlags bench_flags;
  std::vector<std::string> names;
  for (const BenchSection& section : BenchSections()) names.push_back(section.name);
  CLI::App* const bench = app.add_subcommand("bench", "Every figure of docs/benchmarks/scheduling.md");
  bench->add_flag("--quick", bench_flags.options.quick, "A tenth of the requests");
  bench->add_option("--only", bench_flags.only, "Sections, e.g. bursts,grid")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  bench->add_option("--markdown", bench_flags.markdown, "File for the report; without it, standard output");
  bench->add_option("--folder", bench_flags.options.folder, "An existing folder for the plots")
      ->check(CLI::ExistingDirectory)
      ->default_val(".");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return Bench(bench_flags);
}

}  // namespace
}  // namespace saccade::server::simulation

int main(int argc, char** argv) { return saccade::server::simulation::Main(argc, argv); }
