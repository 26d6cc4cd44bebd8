#include "server/ensembles/ensemble_check.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {
namespace {

std::string TypeAndShape(const TensorDescription& tensor) {
  return absl::StrCat(NameOf(tensor.type), " ", ShapeText(tensor.shape));
}

std::string NamesOf(const std::vector<TensorDescription>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const TensorDescription& tensor) {
    absl::StrAppend(out, "'", tensor.name, "'");
  });
}

bool Fits(const TensorDescription& given, const TensorDescription& taken) {
  if (given.type != taken.type || given.shape.size() != taken.shape.size()) return false;
  for (size_t i = 0; i < given.shape.size(); ++i) {
    if (given.shape[i] != taken.shape[i] && given.shape[i] != -1 && taken.shape[i] != -1) return false;
  }
  return true;
}

const TensorDescription* Find(const std::vector<TensorDescription>& tensors, const std::string& name) {
  const auto named = [&name](const TensorDescription& tensor) { return tensor.name == name; };
  const auto found = std::find_if(tensors.begin(), tensors.end(), named);
  return found == tensors.end() ? nullptr : &*found;
}

// All accepted forms of an input.
std::vector<TensorDescription> FormsOf(const ModelInterface& model, const std::string& name) {
  std::vector<TensorDescription> forms;
  for (const auto* tensors : {&model.inputs, &model.other_inputs}) {
    for (const TensorDescription& tensor : *tensors) {
      const auto same = [&tensor](const TensorDescription& form) {
        return form.type == tensor.type && form.shape == tensor.shape;
      };
      if (tensor.name == name && std::none_of(forms.begin(), forms.end(), same)) forms.push_back(tensor);
    }
  }
  return forms;
}

bool FitsOneOf(const std::vector<TensorDescription>& forms, const TensorDescription& tensor) {
  return std::any_of(forms.begin(), forms.end(),
                     [&tensor](const TensorDescription& form) { return Fits(tensor, form); });
}

TensorDescription WithBatchOfOne(TensorDescription tensor) {
  tensor.shape.insert(tensor.shape.begin(), 1);
  return tensor;
}

TensorDescription Described(const TensorSpec& spec, const std::vector<int64_t>& dims,
                            bool has_batch_dimension) {
  TensorDescription tensor{.name = spec.name, .type = spec.type, .shape = dims};
  if (has_batch_dimension) tensor.shape.insert(tensor.shape.begin(), -1);
  return tensor;
}

// The tensor as steps see it.
TensorDescription Reshaped(const TensorSpec& spec, bool has_batch_dimension) {
  return Described(spec, spec.reshape.value_or(spec.dims), has_batch_dimension);
}

// Checks an ensemble and the ensembles among its steps, each once.
class Check {
 public:
  explicit Check(const FindStep& find) : find_(find) {}

  absl::Status Run(const Ensemble& ensemble) {
    const std::string key = absl::StrCat(ensemble.settings.name, " ", ensemble.version);
    const auto [seen, is_new] =
        results_.emplace(key, absl::FailedPreconditionError(absl::StrCat("ensemble '", ensemble.settings.name,
                                                                         "' is a step of itself")));
    if (is_new) {
      absl::Status result = Look(ensemble);
      // Look() may have inserted others, so the iterator is not used again.
      results_[key] = std::move(result);
    }
    return results_[key];
  }

 private:
  absl::Status Look(const Ensemble& ensemble) {
    const EnsemblePlan& plan = ensemble.plan;
    const ModelSettings& settings = ensemble.settings;
    const ModelInterface own = InterfaceOf(ensemble);
    // Indexed like the plan's tensors; filled in the order of the steps.
    std::vector<TensorDescription> given(plan.tensors.size());
    for (size_t i = 0; i < plan.inputs.size(); ++i)
      given[plan.inputs[i]] = Reshaped(settings.inputs[i], settings.has_batch_dimension);
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      absl::Status fits = LookAtStep(plan, i, own, given);
      if (!fits.ok())
        return absl::FailedPreconditionError(absl::StrCat(NameOf(plan, i), ": ", fits.message()));
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const TensorDescription& made = given[plan.outputs[i]];
      const TensorDescription declared = Reshaped(settings.outputs[i], settings.has_batch_dimension);
      if (Fits(made, declared)) continue;
      // The step may have made it for a batch of one.
      if (!settings.has_batch_dimension && Fits(made, WithBatchOfOne(declared))) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("output '", declared.name, "' is declared as ", TypeAndShape(declared), ", but the ",
                       NameOf(plan, *plan.tensors[plan.outputs[i]].maker), " returns ", TypeAndShape(made),
                       BatchNote(ensemble)));
    }
    return absl::OkStatus();
  }

  absl::Status LookAtStep(const EnsemblePlan& plan, size_t number, const ModelInterface& own,
                          std::vector<TensorDescription>& given) {
    const EnsemblePlan::Step& step = plan.steps[number];
    auto found = find_(step.model, step.version);
    if (!found.ok()) return found.status();
    if (found->ensemble != nullptr) {
      if (absl::Status below = Run(*found->ensemble); !below.ok()) return below;
    }
    const ModelInterface& model = found->interface;
    if (model.max_batch_size > 0 && own.max_batch_size > model.max_batch_size) {
      return absl::FailedPreconditionError(absl::StrCat("the model's max_batch_size is ",
                                                        model.max_batch_size, ", lower than the ensemble's ",
                                                        own.max_batch_size, "; lower that of the ensemble"));
    }
    const bool batch_of_one = own.max_batch_size == 0 && model.max_batch_size > 0;
    absl::Status inputs = LookAtInputs(plan, step, model, given, batch_of_one);
    if (!inputs.ok()) return inputs;
    for (const EnsemblePlan::Port& port : step.outputs) {
      const TensorDescription* const made = Find(model.outputs, port.name);
      if (made == nullptr) {
        return absl::FailedPreconditionError(absl::StrCat("output_map names the output '", port.name,
                                                          "', the model's are ", NamesOf(model.outputs)));
      }
      given[port.tensor] = *made;
    }
    return absl::OkStatus();
  }

  static absl::Status LookAtInputs(const EnsemblePlan& plan, const EnsemblePlan::Step& step,
                                   const ModelInterface& model, const std::vector<TensorDescription>& given,
                                   bool batch_of_one) {
    for (const TensorDescription& input : model.inputs) {
      const auto feeds = [&input](const EnsemblePlan::Port& port) { return port.name == input.name; };
      if (input.optional || std::any_of(step.inputs.begin(), step.inputs.end(), feeds)) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("input_map has no entry for the model's input '", input.name, "'"));
    }
    for (const EnsemblePlan::Port& port : step.inputs) {
      const std::vector<TensorDescription> forms = FormsOf(model, port.name);
      if (forms.empty()) {
        return absl::FailedPreconditionError(absl::StrCat("input_map names the input '", port.name,
                                                          "', the model's are ", NamesOf(model.inputs)));
      }
      const TensorDescription& tensor = given[port.tensor];
      if (FitsOneOf(forms, tensor)) continue;
      if (batch_of_one && FitsOneOf(forms, WithBatchOfOne(tensor))) continue;
      const auto text = [](std::string* out, const TensorDescription& form) {
        absl::StrAppend(out, TypeAndShape(form));
      };
      return absl::FailedPreconditionError(
          absl::StrCat("input '", port.name, "' takes ", absl::StrJoin(forms, " or ", text), ", but '",
                       plan.tensors[port.tensor].name, "' is ", TypeAndShape(tensor)));
    }
    return absl::OkStatus();
  }

  static std::string BatchNote(const Ensemble& ensemble) {
    return ensemble.settings.has_batch_dimension ? " (the first extent is the batch, which dims leave out)"
                                                 : "";
  }

  const FindStep& find_;
  // By name and version. While an ensemble is being checked, its entry is the error for a cycle.
  std::map<std::string, absl::Status> results_;
};

}  // namespace

absl::Status CheckEnsemble(const Ensemble& ensemble, const FindStep& find) {
  return Check(find).Run(ensemble);
}

void AddBatchOfOne(const ModelInterface& model, TensorCall& call) {
  if (model.max_batch_size == 0) return;
  for (Tensor& input : call.inputs) {
    const std::vector<TensorDescription> forms = FormsOf(model, input.name);
    const TensorDescription given{.name = input.name, .type = input.type, .shape = input.shape};
    if (FitsOneOf(forms, given) || !FitsOneOf(forms, WithBatchOfOne(given))) continue;
    input.shape.insert(input.shape.begin(), 1);
  }
}

absl::Status CheckRunnable(const Ensemble& ensemble, const FindStep& find) {
  const absl::Status fits = CheckEnsemble(ensemble, find);
  if (fits.ok()) return fits;
  return absl::UnavailableError(
      absl::StrCat("ensemble '", ensemble.settings.name, "' cannot be run: ", fits.message()));
}

ModelInterface InterfaceOf(const Ensemble& ensemble) {
  const ModelSettings& settings = ensemble.settings;
  ModelInterface interface{
      .name = settings.name,
      .versions = {ensemble.version},
      .platform = "ensemble",
      .inputs = {},
      .outputs = {},
      .other_inputs = {},
      .max_batch_size = settings.has_batch_dimension ? settings.batching.max_batch_size : 0};
  for (const TensorSpec& input : settings.inputs) {
    interface.inputs.push_back(Described(input, input.dims, settings.has_batch_dimension));
    interface.inputs.back().optional = input.optional;
  }
  for (const TensorSpec& output : settings.outputs)
    interface.outputs.push_back(Described(output, output.dims, settings.has_batch_dimension));
  return interface;
}

}  // namespace saccade::server
