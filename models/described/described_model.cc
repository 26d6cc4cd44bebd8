#include "models/described/described_model.h"

#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <span>
#include <utility>

#include "models/api/error.h"
#include "models/api/error_text.h"
#include "models/described/heads.h"
#include "models/programs/values.h"
#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

using Values = std::vector<TensorProgram::Value>;

Description Describe(const PictureProgram& pictures, const std::vector<std::string>& labels,
                     const TensorProgram& program) {
  Description description;
  description.architecture = "program";
  description.task = TaskOf(pictures.head.kind);
  description.input = pictures.input;
  description.labels = labels.empty() ? pictures.labels : labels;
  description.notes = program.notes();
  return description;
}

// What the program takes for a batch of float32 [B, 3, H, W].
at::Tensor AsTaken(const PictureProgram& pictures, at::Tensor pixels) {
  if (pictures.channels_last) pixels = pixels.permute({0, 2, 3, 1});
  const DataType type = pictures.pictures.type;
  const bool real = type == DataType::kFp32 || type == DataType::kFp16 || type == DataType::kBf16 ||
                    type == DataType::kFp64;
  if (!real) pixels = pixels.round();
  return pixels.to(ScalarTypeOf(type)).contiguous();
}

// 1 where the batch holds picture.
at::Tensor MaskOf(const TensorSignature& mask, const Batch& batch) {
  at::Tensor values =
      at::zeros({batch.pixels.size(0), batch.pixels.size(2), batch.pixels.size(3)}, ScalarTypeOf(mask.type));
  for (size_t i = 0; i < batch.placements.size(); ++i) {
    const Placement& placement = batch.placements[i];
    values[static_cast<int64_t>(i)]
        .narrow(0, placement.top, placement.scaled.height)
        .narrow(1, placement.left, placement.scaled.width)
        .fill_(1);
  }
  return values;
}

Failure OtherClasses(int64_t classes, int64_t expected) {
  return {"the program's outputs have " + std::to_string(classes) +
          " classes for this picture, but the model has " + std::to_string(expected) +
          "; expected the same number for pictures of all sizes"};
}

// Returns the batch with zeros in place of pictures that are not finite, because a program may throw for
// those, which would fail the others. Sets `finite` for each picture.
Batch WithoutNotFinite(Batch batch, std::vector<bool>& finite) {
  const at::Tensor given = batch.pixels;
  for (int64_t i = 0; i < given.size(0); ++i) {
    finite.push_back(AllFinite(given[i]));
    if (finite.back()) continue;
    if (batch.pixels.is_same(given)) batch.pixels = given.clone();
    batch.pixels[i].zero_();
  }
  return batch;
}

class DescribedModel : public Model {
 public:
  DescribedModel(std::unique_ptr<TensorProgram> program, PictureProgram pictures, Description description)
      : program_(std::move(program)), pictures_(std::move(pictures)), description_(std::move(description)) {}

  const Description& description() const override { return description_; }

  // Sets the number of classes from a pass over a picture of zeros.
  void LookAtOutputs() {
    const Placement placement = PlacementsToWarm(pictures_.input).front();
    const Size size = placement.bucket;
    const Batch batch{.pixels = at::zeros({1, 3, size.height, size.width}), .placements = {placement}};
    const std::vector<PictureOutputs> outputs = Outputs(batch);
    if (std::string remark = program_->remark(); !remark.empty())
      description_.notes.push_back(std::move(remark));
    const int64_t classes = ClassesOf(pictures_, outputs.front(), size);
    const auto labels = static_cast<int64_t>(description_.labels.size());
    if (std::string remark = RemarkOn(pictures_, outputs.front(), labels > 0); !remark.empty())
      description_.notes.push_back(std::move(remark));
    description_.classes = classes < 0 ? labels : classes;
    if (classes < 0 && labels == 0)
      throw LoadError("the outputs do not tell how many classes there are; add labels");
    if (labels == 0 || labels == description_.classes) return;
    throw LoadError("there are " + std::to_string(labels) + " labels, but the program's outputs have " +
                    std::to_string(description_.classes) + " classes; give one label per class");
  }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const c10::InferenceMode inference;
    CheckBatch(description_, batch);
    std::vector<bool> finite;
    const std::vector<PictureOutputs> outputs = Outputs(WithoutNotFinite(batch, finite));
    std::vector<TaskResult> results;
    results.reserve(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!finite[i]) {
        results.emplace_back(NotFiniteInput());
        continue;
      }
      const Placement& placement = batch.placements[i];
      // Another size of picture may give other shapes than the one at load.
      const int64_t classes = ClassesOf(pictures_, outputs[i], placement.bucket);
      if (classes >= 0 && classes != description_.classes) {
        results.emplace_back(OtherClasses(classes, description_.classes));
        continue;
      }
      results.push_back(ReadHead(pictures_, outputs[i], description_.classes, placement));
    }
    return results;
  }

 private:
  // The outputs of each picture.
  std::vector<PictureOutputs> Outputs(const Batch& batch) const {
    Values inputs = {AsTaken(pictures_, batch.pixels)};
    if (pictures_.mask) inputs.emplace_back(MaskOf(*pictures_.mask, batch));
    std::vector<PictureOutputs> outputs(batch.placements.size());
    if (!program_->takes_one_row()) {
      RunOnce(std::move(inputs), outputs);
      return outputs;
    }
    // Outputs of different pictures are not joined: each may have another number of boxes.
    for (size_t i = 0; i < outputs.size(); ++i) {
      Values one;
      for (const auto& input : inputs)
        one.emplace_back(input.toTensor().narrow(0, static_cast<int64_t>(i), 1));
      RunOnce(std::move(one), std::span(outputs).subspan(i, 1));
    }
    return outputs;
  }

  // Adds the outputs for a batch of as many pictures as `outputs` has.
  void RunOnce(Values inputs, std::span<PictureOutputs> outputs) const {
    const Values values = program_->Run(std::move(inputs));
    for (size_t role = 0; role < values.size(); ++role) {
      const bool whole = pictures_.roles[role] == Role::kLabels;
      // A copy gives a graph its memory back, in which it computes the next picture.
      const bool copy = program_->takes_one_row();
      const at::ScalarType type = whole ? at::kLong : at::kFloat;
      const at::Tensor all = values[role].toTensor().to(type, /*non_blocking=*/false, copy).contiguous();
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i].push_back(all[static_cast<int64_t>(i)]);
    }
  }

  const std::unique_ptr<TensorProgram> program_;
  const PictureProgram pictures_;
  Description description_;
};

}  // namespace

std::unique_ptr<Model> MakeDescribedModel(std::unique_ptr<TensorProgram> program, PictureProgram pictures,
                                          const std::vector<std::string>& labels) {
  Description description = Describe(pictures, labels, *program);
  auto model =
      std::make_unique<DescribedModel>(std::move(program), std::move(pictures), std::move(description));
  try {
    model->LookAtOutputs();
  } catch (const LoadError&) {
    throw;
  } catch (const std::exception& error) {
    throw LoadError("the program fails on a picture of zeros: " + ErrorText(error));
  }
  return model;
}

}  // namespace saccade::models
