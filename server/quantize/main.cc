// saccade-quantize: quantizes a model of a repository to int8. `saccade quantize` starts it.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/api/target.h"
#include "models/device/use_threads.h"
#include "models/quantize/figure.h"
#include "models/quantize/quantizer.h"
#include "models/weights/quantized_file.h"
#include "server/core/usable_cores.h"
#include "server/engine/forward.h"
#include "server/lifecycle/environment.h"
#include "server/quantize/arguments.h"
#include "server/quantize/calibration_items.h"
#include "server/quantize/held_out.h"
#include "server/quantize/labelled_items.h"
#include "server/quantize/report.h"
#include "server/quantize/task_figure.h"
#include "server/repository/checksums.h"
#include "server/repository/repository.h"

namespace saccade::server {
namespace {

constexpr char kReportName[] = "weights.int8.html";

volatile std::sig_atomic_t interrupted = 0;

template <typename T, typename Error = std::runtime_error>
T ValueOr(absl::StatusOr<T> value) {
  if (!value.ok()) throw Error(std::string(value.status().message()));
  return *std::move(value);
}

// A line on the terminal that is replaced; elsewhere, a line for each step.
class ProgressLine {
 public:
  void Show(const std::string& step, double done) {
    if (interrupted != 0) throw std::runtime_error("interrupted; nothing was written");
    if (terminal_) {
      std::fprintf(stderr, "\r\033[K%s: %.0f %%", step.c_str(), 100 * done);
      std::fflush(stderr);
    } else if (step != last_) {
      std::fprintf(stderr, "%s\n", step.c_str());
    }
    last_ = step;
  }
  void Hide() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::string last_;
};

ModelEntry ReadEntry(const std::string& model) {
  const std::filesystem::path folder = std::filesystem::weakly_canonical(model);
  ModelEntry entry = ValueOr(ReadModel(folder.parent_path().string(), folder.filename().string()));
  if (entry.settings.backend == Backend::kSaccade) return entry;
  throw std::runtime_error(absl::StrCat(model, ": is of backend ", NameOf(entry.settings.backend),
                                        "; only saccade's own networks can be quantized"));
}

const ModelVersion& Chosen(const ModelEntry& entry, int64_t wanted) {
  const auto found =
      std::find_if(entry.versions.rbegin(), entry.versions.rend(),
                   [&](const ModelVersion& version) { return wanted == 0 || version.version == wanted; });
  if (found == entry.versions.rend())
    throw std::runtime_error(
        absl::StrCat(entry.settings.name, " has no version ", wanted, " that it serves"));
  if (!found->status.ok()) throw std::runtime_error(std::string(found->status.message()));
  return *found;
}

void WriteReport(const std::filesystem::path& path, const std::string& page) {
  const std::filesystem::path partial = path.string() + ".partial";
  std::ofstream file(partial, std::ios::binary);
  file << page;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(partial, path, error);
  if (!file || error) throw std::runtime_error(absl::StrCat(path.string(), ": cannot be written"));
}

// What the model is quantized with.
struct Items {
  std::vector<Item> calibrating;
  std::vector<LabelledItem> held_out;  // empty without labels
};

Items ReadItems(const QuantizeArguments& arguments, const models::Description& description) {
  const auto max_pictures = static_cast<size_t>(arguments.max_pictures);
  const auto read = [&](const std::vector<ItemFiles>& files) {
    return ValueOr(
        ReadCalibrationItems(arguments.pictures, files, description.input, max_pictures, std::cerr));
  };
  if (arguments.labels.empty())
    return {.calibrating = read(ValueOr(ListItems(arguments.pictures, description.input, std::cerr))),
            .held_out = {}};
  if (const absl::Status has = CheckTaskHasLabels(description.task); !has.ok())
    throw std::runtime_error(std::string(has.message()));
  DividedItems divided = ValueOr(
      HoldOut(arguments.pictures,
              ValueOr(ListLabelledItems(arguments.pictures, arguments.labels, description, std::cerr)),
              max_pictures, static_cast<size_t>(arguments.max_held_out)));
  std::cerr << ResolutionWarning(description.task, divided.held_out.size(), arguments.keep_within)
            << std::flush;
  return {.calibrating = read(divided.calibrating), .held_out = std::move(divided.held_out)};
}

std::optional<models::FigureInput> FigureOf(const std::vector<LabelledItem>& held_out,
                                            const models::Description& description) {
  if (held_out.empty()) return std::nullopt;
  const FigureKind kind = FigureKindOf(description.task);
  return models::FigureInput{
      .name = kind.name,
      .is_error = kind.is_error,
      .items = held_out.size(),
      .measure = [&](const models::Model& model, const std::function<void(size_t items)>& done) {
        return ValueOr<double, models::LoadError>(MeasureFigure(model, description, held_out, done));
      }};
}

void Run(const QuantizeArguments& arguments) {
  models::CheckProcessorQuantizes(models::CpuMultipliesInt8());
  const ModelEntry entry = ReadEntry(arguments.model);
  const ModelSettings& settings = entry.settings;
  const ModelVersion& version = Chosen(entry, arguments.version);
  const auto description = models::Describe(settings.architecture, settings.options, settings.labels);
  const Items read = ReadItems(arguments, description);
  const std::vector<Item>& items = read.calibrating;
  models::UseThreads(QuantizeThreads(arguments.threads, ReadCoreLimits(AllowedProcessors())));
  ProgressLine line;
  const models::QuantizeOptions options = {
      .method = arguments.method,
      .max_loss = arguments.keep_within,
      .progress = [&](const std::string& step, double done) { line.Show(step, done); }};
  const models::QuantizeInput input = {
      .architecture = settings.architecture,
      .options = settings.options,
      .labels = settings.labels,
      .weights_path = version.weights_path,
      .digest = [&] { return ValueOr<std::string, models::LoadError>(FileSum(version.weights_path)); },
      .items = items.size(),
      .run =
          [&](const models::Model& model, size_t item) {
            return ValueOr(Forward(model, {items[item].pixels}, {items[item].placement})).front();
          },
      .figure = FigureOf(read.held_out, description)};
  const std::filesystem::path folder = std::filesystem::path(version.weights_path).parent_path();
  const std::string path = (folder / models::kInt8WeightsName).string();
  const models::QuantizeReport report = models::Quantize(input, options, path);
  WriteReport(folder / kReportName, QuantizeReportPage({.model = settings.name,
                                                        .architecture = settings.architecture,
                                                        .weights = version.weights_path,
                                                        .items = items.size(),
                                                        .method = arguments.method,
                                                        .keep_within = arguments.keep_within},
                                                       report));
  line.Hide();
  std::cout << path << "\n"
            << report.quantized_layers() << " of " << report.layers() << " layers in int8; "
            << LossText(report, items.size()) << "\n"
            << "report: " << (folder / kReportName).string() << "\n"
            << "serve it with the parameter precision: int8 in config.pbtxt" << std::endl;
}

}  // namespace
}  // namespace saccade::server

int main(int argc, char** argv) {
  // Otherwise the program would be named "exe" once it has executed itself again (environment.h).
  prctl(PR_SET_NAME, "saccade-quantize");
  const auto arguments = saccade::server::ParseQuantizeArguments(argc, argv);
  // Measures how long threads should spin, which help and wrong flags do not need.
  saccade::server::SetLibraryDefaults(argv);
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int) { saccade::server::interrupted = 1; });
  try {
    saccade::server::Run(arguments);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << (isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "") << "saccade quantize: " << error.what()
              << std::endl;
    return EXIT_FAILURE;
  }
}
