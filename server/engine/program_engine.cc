#include "server/engine/program_engine.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/named_tensors.h"
#include "server/engine/passes.h"
#include "server/engine/program_warm_up.h"
#include "server/engine/tensor_pass.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

models::Description Describe(const models::TensorProgram& program, const ModelSettings& settings) {
  models::Description description;
  description.architecture = "program";
  description.task = models::Task::kTensors;
  description.labels = settings.labels;
  description.options = {settings.options.begin(), settings.options.end()};
  description.notes = program.notes();
  return description;
}

class ProgramEngine final : public Engine {
 public:
  ProgramEngine(std::unique_ptr<models::TensorProgram> program, const ModelSettings& settings)
      : program_(std::move(program)), settings_(settings), description_(Describe(*program_, settings)) {}

  const models::Description& description() const override { return description_; }
  const char* items_name() const override { return "rows"; }

  absl::Status Check(const Request& request) const override {
    const auto* sent = std::get_if<NamedTensors>(&request.input);
    if (sent != nullptr) return CheckTensors(*sent, settings_);
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(request.input_name), ": model '", settings_.name,
                     "' takes named tensors, not pictures; call it through inference.GRPCInferenceService"));
  }

  absl::Status Prepare(PredictCall& call, const Decoder& /*decoder*/, Clock* /*clock*/) const override {
    call.UseBucket(BucketOf(std::get<NamedTensors>(call.request().input), settings_));
    return absl::OkStatus();
  }

  std::function<absl::Status()> WarmUpPass(int64_t size) const override {
    return ProgramPass(*program_, settings_, size);
  }

  absl::Status WarmUp(const WarmUpOptions& options) const override {
    const absl::Status warm = WarmUpProgram(*program_, settings_, options);
    if (const std::string remark = program_->remark(); !remark.empty())
      Log(LogLevel::kWarning, "model note", {{"model", settings_.name}, {"note", remark}});
    return warm;
  }

  std::vector<std::string> Try() const override {
    const auto outputs = ComputeRowOfZeros(*program_, settings_);
    if (!outputs) return {};
    std::vector<std::string> warnings;
    if (!outputs->ok()) {
      warnings.push_back(absl::StrCat("the program fails for a row of zeros: ", outputs->status().message(),
                                      "; it is served, and such requests fail"));
    } else if (auto warning = OtherShape(**outputs)) {
      warnings.push_back(*std::move(warning));
    }
    if (std::string remark = program_->remark(); !remark.empty()) warnings.push_back(std::move(remark));
    return warnings;
  }

  PassEnd Compute(Shares batch, Clock* clock, ModelMetrics* metrics,
                  const std::function<void()>& /*advanced*/) const override {
    return ComputeShares(std::move(batch), clock, metrics,
                         [this](const Shares& shares) { return RunShares(shares); });
  }

 private:
  // A warning about the first output whose shape is not the configuration's; nullopt if there is none.
  std::optional<std::string> OtherShape(const std::vector<Tensor>& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const TensorSpec& spec = settings_.outputs[i];
      if (FitsShape(outputs[i].shape, spec, settings_.has_batch_dimension)) continue;
      return absl::StrCat("output '", spec.name, "': the program returned ", ShapeText(outputs[i].shape),
                          ", but the configuration says ",
                          DescribeTensor(spec, settings_.has_batch_dimension),
                          "; clients get it as it is. Correct the configuration, or set the parameter "
                          "strict_output_shapes to have such requests fail");
    }
    return std::nullopt;
  }

  // Logs the first answer with an output whose shape is not the configuration's.
  void NoteShapes(const std::vector<Tensor>& outputs) const {
    if (noted_.load(std::memory_order_relaxed)) return;
    const std::optional<std::string> warning = OtherShape(outputs);
    if (!warning || noted_.exchange(true)) return;
    Log(LogLevel::kWarning, "model output", {{"model", settings_.name}, {"warning", *warning}});
  }

  absl::StatusOr<std::vector<ShareAnswer>> RunShares(const Shares& shares) const {
    std::vector<const NamedTensors*> requests;
    requests.reserve(shares.size());
    for (const auto& share : shares) requests.push_back(&share->tensors());
    auto outputs = RunTensors(*program_, settings_, requests);
    if (!outputs.ok()) return outputs.status();
    NoteShapes((*outputs)[0]);
    return std::vector<ShareAnswer>(std::make_move_iterator(outputs->begin()),
                                    std::make_move_iterator(outputs->end()));
  }

  const std::unique_ptr<models::TensorProgram> program_;
  const ModelSettings& settings_;
  const models::Description description_;
  // Whether an output with another shape was logged.
  mutable std::atomic<bool> noted_ = false;
};

absl::Status Invalid(const TensorSpec& spec, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("'", spec.name, "' ", problem));
}

int64_t FreeIn(const std::vector<int64_t>& dims) { return std::count(dims.begin(), dims.end(), -1); }

}  // namespace

absl::Status CheckProgramSettings(const ModelSettings& settings) {
  const auto required = std::find_if(settings.inputs.begin(), settings.inputs.end(),
                                     [](const TensorSpec& spec) { return !spec.optional; });
  // If all inputs are optional, any of them may be the only one.
  const auto first = required == settings.inputs.end() ? settings.inputs.begin() : required;
  const bool texts_alone = std::all_of(first, settings.inputs.end(), [&](const TensorSpec& spec) {
    return (spec.optional && required != settings.inputs.end()) || spec.type == DataType::kBytes;
  });
  if (texts_alone && settings.has_batch_dimension && FreeIn(first->dims) > 0) {
    return Invalid(*first,
                   "is BYTES with a free extent: if all required inputs are BYTES, the rows of a batch "
                   "cannot be told apart; "
                   "fix its dims, or use max_batch_size 0");
  }
  for (const TensorSpec& spec : settings.outputs) {
    if (spec.type == DataType::kBytes && FreeIn(spec.dims) > 1)
      return Invalid(spec,
                     "is BYTES with several free extents; only one can be inferred from a program's list");
  }
  return absl::OkStatus();
}

std::unique_ptr<Engine> MakeProgramEngine(std::unique_ptr<models::TensorProgram> program,
                                          const ModelSettings& settings) {
  return std::make_unique<ProgramEngine>(std::move(program), settings);
}

}  // namespace saccade::server
