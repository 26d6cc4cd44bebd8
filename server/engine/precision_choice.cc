#include "server/engine/precision_choice.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/api/model.h"
#include "models/api/registry.h"
#include "models/tasks/disagreement.h"
#include "models/weights/quantized_file.h"
#include "server/engine/forward.h"
#include "server/engine/samples.h"

namespace saccade::server {
namespace {

// Passes that are timed, after one that chooses algorithms. With long passes fewer are timed.
constexpr int kTimedPasses = 7;
constexpr absl::Duration kTimeLimit = absl::Seconds(3);
// Times of the same pass differ by a few percent. Without this margin, replicas of a model would choose
// differently, and so would a model that is loaded again, and clients would see other answers.
constexpr double kClearlyFaster = 0.95;

using Results = std::vector<models::TaskResult>;

absl::StatusOr<Results> RunOn(const models::Model& model, const Item& item) {
  return Forward(model, {item.pixels}, {item.placement});
}

absl::Duration Median(std::vector<absl::Duration> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

std::string Percent(double share) { return absl::StrFormat("%.2g %%", 100 * share); }
std::string Milliseconds(absl::Duration time) {
  return absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(time));
}

// Both candidates, float32 and a coarser one, and what was measured so far.
class Comparison {
 public:
  Comparison(std::unique_ptr<models::Model> exact, std::unique_ptr<models::Model> coarse,
             models::Precision precision, Clock* clock)
      : exact_(std::move(exact)), coarse_(std::move(coarse)), precision_(precision), clock_(clock) {}

  const models::ImageInput& input() const { return exact_->description().input; }
  models::Precision precision() const { return precision_; }
  const char* name() const { return models::PrecisionName(precision_); }
  int count() const { return count_; }
  double loss() const { return loss_ / count_; }
  // False if the samples cannot show a difference.
  bool has_evidence() const { return has_evidence_; }

  absl::Status Add(const Item& item) {
    const auto expected = RunOn(*exact_, item);
    if (!expected.ok()) return expected.status();
    const auto got = RunOn(*coarse_, item);
    if (!got.ok()) return got.status();
    loss_ += models::Disagreement(expected->front(), got->front());
    has_evidence_ |= models::HasCertainFinding(expected->front()) || models::HasCertainFinding(got->front());
    ++count_;
    return absl::OkStatus();
  }

  // Medians of passes over the item in float32 and the coarser precision, which take turns.
  absl::StatusOr<std::array<absl::Duration, 2>> Time(const Item& item) const {
    const std::array<const models::Model*, 2> candidates = {exact_.get(), coarse_.get()};
    std::array<std::vector<absl::Duration>, 2> times;
    const absl::Time end = clock_->Now() + kTimeLimit;
    for (int pass = 0; pass < kTimedPasses && (pass == 0 || clock_->Now() < end); ++pass) {
      for (size_t i = 0; i < candidates.size(); ++i) {
        const absl::Time start = clock_->Now();
        if (auto ran = RunOn(*candidates[i], item); !ran.ok()) return ran.status();
        times[i].push_back(clock_->Now() - start);
      }
    }
    return std::array<absl::Duration, 2>{Median(std::move(times[0])), Median(std::move(times[1]))};
  }

 private:
  const std::unique_ptr<models::Model> exact_, coarse_;
  const models::Precision precision_;
  Clock* const clock_;
  double loss_ = 0;
  int count_ = 0;
  bool has_evidence_ = false;
};

PrecisionChoice Exact(std::string reason) {
  return {.precision = models::Precision::kFloat32, .reason = std::move(reason)};
}

// Also returns the share of float32's time that a pass takes in the precision that is chosen.
std::pair<PrecisionChoice, double> Measure(Comparison& comparison, const ModelSettings& settings,
                                           Clock* clock) {
  const auto exact_because = [](std::string reason) { return std::pair(Exact(std::move(reason)), 1.0); };
  const auto divided = DivideIntoItems(settings.samples, comparison.input());
  if (!divided.ok()) return exact_because(absl::StrCat("the folder samples ", divided.status().message()));
  if (!divided->no_pictures.empty())
    return exact_because(absl::StrCat("a sample is no picture: ", divided->no_pictures.front()));
  Item first;
  for (const std::vector<std::string>& files : divided->items) {
    auto item = ReadSample(files, comparison.input(), clock);
    absl::Status added = item.ok() ? comparison.Add(*item) : item.status();
    if (!added.ok()) return exact_because(absl::StrCat("a sample cannot be computed: ", added.message()));
    if (comparison.count() == 1) first = *std::move(item);
  }
  if (!comparison.has_evidence())
    return exact_because(
        "no sample has a finding with a score of 0.5 or more, so there is nothing to compare");
  const std::string changes = absl::StrCat(comparison.name(), " changes ", Percent(comparison.loss()),
                                           " of the answers to ", comparison.count(), " samples");
  if (comparison.loss() > settings.max_precision_loss) {
    return exact_because(absl::StrCat(changes, ", more than max_precision_loss allows, ",
                                      Percent(settings.max_precision_loss)));
  }
  const auto times = comparison.Time(first);
  if (!times.ok()) return exact_because(std::string(times.status().message()));
  const auto [exact, coarse] = *times;
  if (!IsClearlyFaster(absl::FDivDuration(coarse, exact), 1)) {
    return exact_because(absl::StrCat(comparison.name(), " is not clearly faster: ", Milliseconds(coarse),
                                      ", fp32 takes ", Milliseconds(exact)));
  }
  return {{.precision = comparison.precision(),
           .reason = absl::StrCat(changes, ", and takes ", Milliseconds(coarse), " instead of ",
                                  Milliseconds(exact))},
          absl::FDivDuration(coarse, exact)};
}

constexpr char kNoBFloat16[] = "this processor has no instructions for bf16 (avx512_bf16)";
constexpr char kNoInt8[] = "this processor has no instructions for int8 (avx512_vnni or avx_vnni)";

// The precisions beside float32 that "auto" may choose, if there are samples.
struct Candidates {
  bool bfloat16 = false;
  bool int8 = false;
  // Whether the version has quantized weights for the CPU.
  bool is_quantized = false;
};

Candidates CandidatesFor(const EngineOptions& options, const NativePrecisions& native) {
  const bool is_quantized = !options.gpu && !options.version.int8_weights_path.empty();
  return {.bfloat16 = options.gpu || native.bfloat16,
          .int8 = is_quantized && native.int8,
          .is_quantized = is_quantized};
}

// The fastest precision that qualifies. REQUIRES: there is a candidate.
absl::StatusOr<PrecisionChoice> Fastest(const ModelSettings& settings, const EngineOptions& options,
                                        const Candidates& candidates, Clock* clock) {
  const auto load = [&](models::Precision precision) {
    return models::Load(settings.architecture, models::WithPrecision(settings.options, precision),
                        WeightsFor(options.version, precision), settings.labels, options.gpu);
  };
  const auto measure = [&](models::Precision precision) {
    Comparison comparison(load(models::Precision::kFloat32), load(precision), precision, clock);
    return Measure(comparison, settings, clock);
  };
  try {
    if (!candidates.int8) return measure(models::Precision::kBFloat16).first;
    auto [choice, share] = measure(models::Precision::kInt8);
    if (!candidates.bfloat16) return choice;
    auto [other, other_share] = measure(models::Precision::kBFloat16);
    // The reason, which is logged, describes both measurements.
    // bf16 changes less, so int8 has to be clearly faster than it.
    if (!IsClearlyFaster(share, other_share)) std::swap(choice, other);
    choice.reason = absl::StrCat(choice.reason, "; ", other.reason);
    return choice;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(models::ErrorText(error));
  }
}

}  // namespace

bool IsClearlyFaster(double share, double other_share) { return share < kClearlyFaster * other_share; }

absl::Status CheckQuantizedFrom(const ModelVersion& version, const FileSummer& sum_of_file) {
  if (version.int8_weights_path.empty() || version.weights_path.empty()) return absl::OkStatus();
  // The version has no other weights.
  if (version.int8_weights_path == version.weights_path) return absl::OkStatus();
  std::string source;
  try {
    source = models::SourceDigest(version.int8_weights_path);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(models::ErrorText(error));
  }
  if (source.empty()) return absl::OkStatus();
  const auto sum = sum_of_file(version.weights_path);
  if (!sum.ok()) return sum.status();
  if (*sum == source) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(version.int8_weights_path, " was made from other weights than ", version.weights_path,
                   "; run saccade quantize again, or remove it"));
}

NativePrecisions NativePrecisionsHere() {
  return {.bfloat16 = models::CpuMultipliesBFloat16(), .int8 = models::CpuMultipliesInt8()};
}

std::vector<models::Precision> ComparedPrecisions(const ModelSettings& settings, const EngineOptions& options,
                                                  const NativePrecisions& native) {
  if (!models::IsPrecisionAuto(settings.options) || settings.samples.empty()) return {};
  const Candidates candidates = CandidatesFor(options, native);
  if (!candidates.bfloat16 && !candidates.int8) return {};
  std::vector<models::Precision> compared = {models::Precision::kFloat32};
  if (candidates.bfloat16) compared.push_back(models::Precision::kBFloat16);
  if (candidates.int8) compared.push_back(models::Precision::kInt8);
  return compared;
}

std::vector<std::string> LackedPrecisions(const ModelSettings& settings, const EngineOptions& options,
                                          const NativePrecisions& native) {
  if (!models::IsPrecisionAuto(settings.options)) return {};
  const Candidates candidates = CandidatesFor(options, native);
  std::vector<std::string> lacks;
  if (candidates.is_quantized && !candidates.int8)
    lacks.push_back(absl::StrCat("quantized weights are not used: ", kNoInt8));
  if (!candidates.bfloat16 && !candidates.int8)
    lacks.push_back(absl::StrCat("precision auto stays at fp32: ", kNoBFloat16));
  return lacks;
}

absl::StatusOr<PrecisionChoice> ChoosePrecision(const ModelSettings& settings, const EngineOptions& options,
                                                const NativePrecisions& native, Clock* clock) {
  const auto set = settings.options.find("precision");
  if (set == settings.options.end()) return Exact("the configuration sets none");
  if (!models::IsPrecisionAuto(settings.options)) {
    try {
      const models::Precision precision = models::PrecisionOf(settings.options);
      if (precision == models::Precision::kInt8) {
        if (absl::Status fits = CheckQuantizedFrom(options.version, options.file_sum); !fits.ok())
          return fits;
      }
      return PrecisionChoice{.precision = precision, .reason = "set in the configuration"};
    } catch (const models::LoadError& error) {
      return absl::InvalidArgumentError(error.what());
    }
  }
  Candidates candidates = CandidatesFor(options, native);
  const absl::Status fits =
      candidates.is_quantized ? CheckQuantizedFrom(options.version, options.file_sum) : absl::OkStatus();
  if (!fits.ok()) candidates.int8 = false;
  absl::StatusOr<PrecisionChoice> choice;
  if (!candidates.bfloat16 && !candidates.int8) {
    choice = Exact(kNoBFloat16);
  } else if (settings.samples.empty()) {
    choice = Exact("there is nothing to measure with: the model has no folder samples");
  } else {
    choice = Fastest(settings, options, candidates, clock);
  }
  if (choice.ok()) choice->lacks = LackedPrecisions(settings, options, native);
  if (choice.ok() && !fits.ok())
    choice->reason = absl::StrCat("quantized weights are not used: ", fits.message(), "; ", choice->reason);
  return choice;
}

}  // namespace saccade::server
