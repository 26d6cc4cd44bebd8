#include "models/quantize/quantizer.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>

#include "kernels/common/cpu_isa.h"
#include "models/api/error.h"
#include "models/api/registry.h"
#include "models/api/target.h"
#include "models/layers/calibration.h"
#include "models/tasks/disagreement.h"
#include "models/weights/quantized_file.h"

namespace saccade::models {
namespace {

// Items with which each unit is tried alone. The chosen units together are measured with all items.
constexpr size_t kMaxTrialItems = 16;

// A folder for the files that are measured, removed with them. It is not the model's, in which a daemon that
// polls the repository would see them.
class Workplace {
 public:
  Workplace() {
    std::string name = (std::filesystem::temp_directory_path() / "saccade-quantize.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw LoadError(name + ": cannot be created");
    folder_ = name;
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string candidate() const { return (folder_ / kInt8WeightsName).string(); }

 private:
  std::filesystem::path folder_;
};

class Quantizer {
 public:
  Quantizer(const QuantizeInput& input, const QuantizeOptions& options, const std::string& path)
      : input_(input),
        options_(options),
        path_(path),
        digest_(input.digest ? input.digest() : ""),
        model_(LoadToCalibrate(input.architecture, WithoutPrecision(input.options), input.weights_path,
                               input.labels, calibration_)) {}

  QuantizeReport Run() {
    // First, because labels that do not fit show here.
    if (input_.figure) MeasureFloat32();
    MeasureRanges();
    TryUnits();
    ChooseUnits();
    return std::move(report_);
  }

 private:
  void Progress(const std::string& step, size_t done, size_t of) const {
    if (options_.progress) options_.progress(step, static_cast<double>(done) / static_cast<double>(of));
  }

  TaskResult RunItem(const Model& model, size_t item) const {
    TaskResult result = input_.run(model, item);
    if (const auto* failure = std::get_if<Failure>(&result)) throw LoadError(failure->message);
    return result;
  }

  // Measures the figure of a network. `step` is the progress' name.
  double Figure(const Model& model, const std::string& step) const {
    const FigureInput& figure = *input_.figure;
    return figure.measure(model, [&](size_t done) { Progress(step, done, figure.items); });
  }

  void MeasureFloat32() {
    const FigureInput& figure = *input_.figure;
    FigureReport& report = report_.figure.emplace(
        FigureReport{.name = figure.name, .is_error = figure.is_error, .items = figure.items});
    report.float32 = Figure(*model_, figure.name + " in float32");
    if (report.float32 > 0) return;
    throw LoadError(figure.name + " is " + FigureText(report.float32) + " in float32 on " +
                    std::to_string(figure.items) +
                    " held-out items, so there is nothing to lose a share of; expected the labels of these "
                    "items, with the model's numbers of the classes: check the labels, or leave them out");
  }

  void MeasureRanges() {
    for (const auto phase : {Calibration::Phase::kRanges, Calibration::Phase::kHistograms}) {
      const bool first = phase == Calibration::Phase::kRanges;
      calibration_.Measure(phase);
      for (size_t item = 0; item < input_.items; ++item) {
        Progress(first ? "ranges" : "histograms", item, input_.items);
        TaskResult result = RunItem(*model_, item);
        if (first) expected_.push_back(std::move(result));
      }
    }
    calibration_.Measure(Calibration::Phase::kOff);
    CheckEvidence();
  }

  // Throws a LoadError if the answers cannot show what a layer changes.
  void CheckEvidence() const {
    if (options_.all_layers || std::any_of(expected_.begin(), expected_.end(), HasCertainFinding)) return;
    throw LoadError(
        "nothing with a score of 0.5 or more is found on these pictures in float32, so there is nothing to "
        "compare; expected pictures on which the model finds something");
  }

  // Measures each unit in 8 bits, with all others in float32.
  void TryUnits() {
    const auto& units = calibration_.units();
    for (size_t index = 0; index < units.size(); ++index) {
      const auto& layers = units[index].layers;
      UnitCost& cost = report_.units.emplace_back(UnitCost{.module = units[index].module, .layers = {}});
      for (const auto& layer : layers) cost.layers.push_back(layer->file_name());
      if (!std::all_of(layers.begin(), layers.end(), [](const auto& layer) { return layer->seen(); }))
        continue;
      by_cost_.push_back(index);
      if (options_.all_layers) continue;
      Progress("layers", index, units.size());
      cost.loss = LossOf(layers);
    }
    if (by_cost_.empty()) throw LoadError(input_.architecture + " has no convolution that can be quantized");
    // The costliest first.
    std::stable_sort(by_cost_.begin(), by_cost_.end(),
                     [&](size_t a, size_t b) { return report_.units[a].loss > report_.units[b].loss; });
  }

  // Measures what these layers change of the answers if they alone compute in 8 bits.
  double LossOf(const std::vector<std::shared_ptr<CalibratedLayer>>& layers) const {
    const size_t trials = std::min(input_.items, kMaxTrialItems);
    double loss = 0;
    for (const auto& layer : layers) layer->Try(layer->Grids(options_.method));
    for (size_t trial = 0; trial < trials; ++trial) {
      // Evenly spread: neighbours may be of one class, as items are in the order of their files' names.
      const size_t item = trial * input_.items / trials;
      loss += Disagreement(expected_[item], RunItem(*model_, item)) / static_cast<double>(trials);
    }
    for (const auto& layer : layers) layer->Untry();
    return loss;
  }

  // The layers of all units but the `kept` costliest.
  std::map<std::string, QuantizedLayer> Without(size_t kept) const {
    std::map<std::string, QuantizedLayer> chosen;
    for (size_t i = kept; i < by_cost_.size(); ++i) {
      for (const auto& layer : calibration_.units()[by_cost_[i]].layers)
        chosen[layer->file_name()] = {QuantizedWeight(layer->weight()), layer->Grids(options_.method)};
    }
    return chosen;
  }

  // The number of layers in the `kept` costliest units.
  size_t LayersIn(size_t kept) const {
    size_t layers = 0;
    for (size_t i = 0; i < kept; ++i) layers += report_.units[by_cost_[i]].layers.size();
    return layers;
  }

  // Measures what the network without the `kept` costliest units changes of the answers, or loses of the
  // figure.
  double LossWithout(size_t kept) {
    WriteQuantized(input_.weights_path, Without(kept), workplace_.candidate());
    const auto model = Load(input_.architecture, WithPrecision(input_.options, Precision::kInt8),
                            workplace_.candidate(), input_.labels);
    const std::string step = "the network without " + std::to_string(LayersIn(kept)) + " layers";
    if (input_.figure) {
      figures_[kept] = Figure(*model, step);
      return FigureLoss(input_.figure->is_error, report_.figure->float32, figures_[kept]);
    }
    double loss = 0;
    for (size_t item = 0; item < input_.items; ++item) {
      Progress(step, item, input_.items);
      loss += Disagreement(expected_[item], RunItem(*model, item)) / static_cast<double>(input_.items);
    }
    return loss;
  }

  // Finds the smallest number of units to leave out with which the loss is small enough, supposing that it
  // falls with each: doubles the number, and halves the interval that is left.
  void ChooseUnits() {
    const size_t count = by_cost_.size();
    double loss = report_.loss_of_all = LossWithout(0);
    size_t too_few = 0;
    size_t enough = 0;
    while (loss > options_.max_loss && !options_.all_layers) {
      too_few = enough;
      if (enough == count - 1) throw LoadError(NothingLeft(loss));
      enough = std::min(std::max<size_t>(1, 2 * enough), count - 1);
      loss = LossWithout(enough);
    }
    while (enough > too_few + 1) {
      const size_t measured = too_few + (enough - too_few) / 2;
      const double middle = LossWithout(measured);
      if (middle > options_.max_loss) {
        too_few = measured;
      } else {
        enough = measured;
        loss = middle;
      }
    }
    report_.loss = loss;
    for (size_t i = enough; i < count; ++i) report_.units[by_cost_[i]].quantized = true;
    std::map<std::string, std::string> metadata;
    if (report_.figure) {
      report_.figure->int8_of_all = figures_.at(0);
      report_.figure->int8 = figures_.at(enough);
      metadata = FigureMetadata(*report_.figure);
    }
    if (!digest_.empty()) metadata[kSourceDigestName] = digest_;
    // Into the workplace first: the weights are read again for it.
    WriteQuantized(input_.weights_path, Without(enough), workplace_.candidate(), metadata);
    CheckSource();
    WriteQuantized(workplace_.candidate(), {}, path_, metadata);
  }

  // Throws a LoadError if the weights are no longer those that were measured.
  void CheckSource() const {
    if (digest_.empty() || input_.digest() == digest_) return;
    throw LoadError(input_.weights_path +
                    ": was replaced while it was quantized; run the command again once the file stays");
  }

  std::string NothingLeft(double loss) const {
    const bool single = report_.units[by_cost_.back()].layers.size() == 1;
    const std::string lost =
        input_.figure ? " % of " + input_.figure->name + " are lost" : " % of the answers change";
    return std::string("even with a single ") + (single ? "layer" : "module") + " in 8 bits " +
           std::to_string(100 * loss) + lost + ", more than " + std::to_string(100 * options_.max_loss) +
           " %; allow more, or serve the model in bf16 or fp32";
  }

  const QuantizeInput& input_;
  const QuantizeOptions& options_;
  const std::string path_;
  const std::string digest_;
  const Workplace workplace_;
  Calibration calibration_;
  const std::unique_ptr<Model> model_;
  std::vector<TaskResult> expected_;
  // Figures of the networks that were measured, by the number of units that were left out.
  std::map<size_t, double> figures_;
  // Indices of the units that were tried.
  std::vector<size_t> by_cost_;
  QuantizeReport report_;
};

size_t CountLayers(const std::vector<UnitCost>& units, bool only_quantized) {
  size_t layers = 0;
  for (const UnitCost& unit : units) layers += unit.quantized || !only_quantized ? unit.layers.size() : 0;
  return layers;
}

}  // namespace

void CheckProcessorQuantizes(bool native) {
  if (native) return;
  const char* const limit = std::getenv(kernels::kCpuIsaVariable);
  const bool limited = limit != nullptr && *limit != '\0';
  throw LoadError(
      std::string("this processor has no instructions for int8 (avx512_vnni or avx_vnni)") +
      (limited ? std::string(", or ") + kernels::kCpuIsaVariable + "=" + limit + " forbids them" : "") +
      "; quantizing measures the network in int8, so it needs a processor with them. Run it on such a "
      "machine" +
      (limited ? std::string(", without ") + kernels::kCpuIsaVariable : ""));
}

size_t QuantizeReport::layers() const { return CountLayers(units, /*only_quantized=*/false); }
size_t QuantizeReport::quantized_layers() const { return CountLayers(units, /*only_quantized=*/true); }

QuantizeReport Quantize(const QuantizeInput& input, const QuantizeOptions& options, const std::string& path) {
  try {
    CheckProcessorQuantizes(CpuMultipliesInt8());
    return Quantizer(input, options, path).Run();
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    throw LoadError(input.weights_path + ": cannot be quantized: " + error.what());
  }
}

}  // namespace saccade::models
