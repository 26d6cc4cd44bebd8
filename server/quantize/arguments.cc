#include "server/quantize/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace saccade::server {
namespace {

constexpr int kUsage = 2;
constexpr int kMaxPictures = 4096;
constexpr int kMaxHeldOut = 100'000;
constexpr int kMaxThreads = 1024;

const std::map<std::string, models::RangeMethod> kMethods = {
    {models::RangeMethodName(models::RangeMethod::kMse), models::RangeMethod::kMse},
    {models::RangeMethodName(models::RangeMethod::kPercentile), models::RangeMethod::kPercentile},
    {models::RangeMethodName(models::RangeMethod::kMinMax), models::RangeMethod::kMinMax}};

// Reads "0.5%", "0.5 %" or "0.005". Returns an error, or nothing.
std::string ReadShare(absl::string_view text, double* share) {
  const bool percent = absl::ConsumeSuffix(&text, "%");
  double number = 0;
  if (!absl::SimpleAtod(absl::StripAsciiWhitespace(text), &number)) number = -1;
  if (percent) number /= 100;
  // The negation also rejects NaN.
  if (!(number >= 0 && number <= 1)) return "expected a share from 0% to 100%, such as 0.5% or 0.005";
  *share = number;
  return "";
}

}  // namespace

int QuantizeThreads(int asked, const CoreLimits& limits) { return asked > 0 ? asked : UsableCores(limits); }

QuantizeArguments ParseQuantizeArguments(int argc, char** argv) {
  QuantizeArguments arguments;
  CLI::App app(
      "Quantizes a model's convolutions to int8, measured on pictures that stand for its traffic. Writes "
      "weights.int8.safetensors and a report, weights.int8.html, beside the model's weights.",
      "saccade quantize");
  app.add_option("--model", arguments.model, "The model's folder in its repository")->required();
  app.add_option(
         "--pictures", arguments.pictures,
         "Folder with at least 8 pictures (videos, volumes) like those that the model will be sent; for a "
         "stereo model, left and right alternate by name")
      ->required();
  CLI::Option* const labels = app.add_option(
      "--labels", arguments.labels,
      "The pictures' labels, by which the task's figure is measured. Classification: a list with a line FILE "
      "LABEL for each picture (a .csv: FILE,LABEL), or the folder of --pictures itself, if it has a folder "
      "for each class. Segmentation: a folder of PNG masks, stereo: a folder of disparities (.pfm, or "
      ".png of 16 bits), with the pictures' names");
  std::string keep_within = "0.5%";
  app.add_option(
         "--keep-within", keep_within,
         "How much of the answers may change, or with --labels how much of the figure may be lost; layers "
         "that cost too much stay in a higher precision")
      ->capture_default_str();
  app.add_option("--method", arguments.method, "How a map's range is chosen")
      ->transform(CLI::CheckedTransformer(kMethods))
      ->default_str("mse")
      ->option_text("mse|percentile|min-max [mse]");
  app.add_option("--version", arguments.version, "Version of the model; the highest by default")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-pictures", arguments.max_pictures,
                 "Maximum number of pictures on which ranges are measured")
      ->check(CLI::Range(8, kMaxPictures))
      ->capture_default_str();
  app.add_option("--max-held-out", arguments.max_held_out,
                 "Maximum number of other labelled pictures on which the figure is measured")
      ->check(CLI::Range(8, kMaxHeldOut))
      ->needs(labels)
      ->capture_default_str();
  app.add_option("--threads", arguments.threads,
                 "Number of cores; by default those that the affinity and the container's CPU limit allow")
      ->check(CLI::Range(1, kMaxThreads));
  try {
    app.parse(argc, argv);
    if (const std::string wrong = ReadShare(keep_within, &arguments.keep_within); !wrong.empty())
      throw CLI::ValidationError("--keep-within", "is " + keep_within + ", " + wrong);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kUsage);
  }
  return arguments;
}

}  // namespace saccade::server
