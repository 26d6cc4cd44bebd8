#include "server/repository/config_fields.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/repository/config_lines.h"

namespace saccade::server {
namespace {

namespace pb = google::protobuf;

constexpr auto kWorks = FieldSupport::kWorks;
constexpr auto kIgnored = FieldSupport::kIgnored;
constexpr auto kRefused = FieldSupport::kRefused;

constexpr ConfigField kFields[] = {
    {"name", kWorks, "the folder's name, or omitted"},
    {"platform", kWorks, "pytorch_libtorch, torch_aoti, onnxruntime_onnx, ensemble"},
    {"backend", kWorks, "saccade, pytorch, onnxruntime and openvino (both computed by OpenVINO), ensemble"},
    {"runtime", kRefused, "the program in the version's folder runs unchanged; remove it"},
    {"version_policy", kWorks, "latest, all, specific"},
    {"max_batch_size", kWorks, "1 to 65536; 0 (no batch dimension) only with programs, graphs and ensemble"},
    {"input", kWorks, "ignored with backend saccade, whose architecture defines its inputs"},
    {"input.format", kWorks, "FORMAT_NHWC and FORMAT_NCHW need three dims"},
    {"input.is_shape_tensor", kRefused, "shape tensors are TensorRT's"},
    {"input.allow_ragged_batch", kRefused, "requests of different shapes are computed separately; remove it"},
    {"input.optional", kWorks,
     "for TorchScript inputs with a default or Optional[...], and for ensembles; refused for AOTInductor "
     "packages"},
    {"input.is_non_linear_format_io", kRefused, "non-linear formats are TensorRT's"},
    {"output", kWorks, "as input"},
    {"output.is_shape_tensor", kRefused, "shape tensors are TensorRT's"},
    {"output.is_non_linear_format_io", kRefused, "non-linear formats are TensorRT's"},
    {"batch_input", kRefused, "inputs derived from the batch are not supported"},
    {"batch_output", kRefused, "outputs scattered by batch are not supported"},
    {"optimization", kIgnored, "saccade selects optimizations itself"},
    {"dynamic_batching", kWorks, "docs/operations.md, Schedule a model"},
    {"sequence_batching", kRefused, "sequences are not supported"},
    {"ensemble_scheduling", kWorks, "at most 64 steps"},
    {"ensemble_scheduling.step.model_namespace", kRefused, "models have no namespaces; remove it"},
    {"ensemble_scheduling.max_inflight_requests", kIgnored,
     "a step answers each request once; limit the models with max_inflight_requests in their parameters"},
    {"instance_group", kWorks, "1 to 64 instances in total, either on the CPU or on GPUs"},
    {"instance_group.kind", kWorks, "KIND_AUTO (the CPU), KIND_CPU, KIND_GPU; KIND_MODEL is refused"},
    {"instance_group.gpus", kWorks,
     "with KIND_GPU: count instances on each; without it, on every GPU of the machine"},
    {"instance_group.rate_limiter", kIgnored, "'weight' in parameters gives a model its share of a device"},
    {"instance_group.secondary_devices", kIgnored, "secondary devices are not supported"},
    {"instance_group.profile", kIgnored, "optimization profiles are TensorRT's"},
    {"instance_group.passive", kIgnored, "passive instances compute like others"},
    {"instance_group.host_policy", kIgnored, "use 'pin' in parameters to reserve cores for each instance"},
    {"default_model_filename", kWorks, "a plain file name"},
    {"cc_model_filenames", kIgnored, "the version's own file is used on every device"},
    {"metric_tags", kIgnored, "metrics always have the labels model and version"},
    {"parameters", kWorks, "docs/operations.md and docs/models.md"},
    {"model_warmup", kWorks, "at most 64 entries"},
    {"model_operations", kRefused, "libraries of operators are not loaded"},
    {"model_transaction_policy", kWorks, "decoupled: false"},
    {"model_transaction_policy.decoupled", kRefused, "each request gets exactly one answer; remove it"},
    {"model_repository_agents", kRefused, "model files are read without preprocessing; remove it"},
    {"response_cache", kWorks, "with --cache-config; ignored for ensembles, whose steps may use it"},
    {"model_metrics", kIgnored, "the flag --latency-buckets sets the buckets of all models"},
};

// Returns the row with the longest path that is `path` or a parent of it.
const ConfigField* RowOf(absl::string_view path) {
  const ConfigField* best = nullptr;
  for (const ConfigField& field : kFields) {
    const absl::string_view row = field.path;
    const bool covers = absl::StartsWith(path, row) && (path.size() == row.size() || path[row.size()] == '.');
    if (covers && (best == nullptr || row.size() > absl::string_view(best->path).size())) best = &field;
  }
  return best;
}

// Whether fields below `path` have rows of their own.
bool HasRowsBelow(absl::string_view path) {
  return std::any_of(std::begin(kFields), std::end(kFields), [&](const ConfigField& field) {
    const absl::string_view row = field.path;
    return row.size() > path.size() && absl::StartsWith(row, path) && row[path.size()] == '.';
  });
}

class Walk {
 public:
  Walk(const ConfigCheck& check, std::vector<std::string>* warnings) : check_(check), warnings_(*warnings) {}

  // `row_prefix` is the path without indices, `prefix` the path with indices.
  absl::Status Visit(const pb::Message& message, const std::string& row_prefix, const std::string& prefix) {
    std::vector<const pb::FieldDescriptor*> set;
    message.GetReflection()->ListFields(message, &set);
    for (const pb::FieldDescriptor* field : set) {
      const std::string path = absl::StrCat(prefix, field->name());
      const std::string row_path = absl::StrCat(row_prefix, field->name());
      const bool is_message = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
      if (absl::Status status = Judge(row_path, path); !status.ok()) return status;
      if (!is_message || field->is_map() || !HasRowsBelow(row_path)) continue;
      if (absl::Status status = VisitBelow(message, field, row_path + ".", path); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status VisitBelow(const pb::Message& message, const pb::FieldDescriptor* field,
                          const std::string& row_prefix, const std::string& path) {
    const pb::Reflection* const reflection = message.GetReflection();
    if (!field->is_repeated()) return Visit(reflection->GetMessage(message, field), row_prefix, path + ".");
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      absl::Status status = Visit(reflection->GetRepeatedMessage(message, field, i), row_prefix,
                                  absl::StrCat(path, "[", i, "]."));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Judge(const std::string& row_path, const std::string& path) {
    const ConfigField* const row = RowOf(row_path);
    if (row == nullptr) return check_.Error(path, "is unknown; remove it");
    if (row->support == kRefused) return check_.Error(path, "is not supported by saccade: ", row->note);
    if (row->support == kIgnored && warned_.insert(row->path).second) {
      warnings_.push_back(absl::StrCat(check_.Where(path), "is ignored: ", row->note));
    }
    return absl::OkStatus();
  }

  const ConfigCheck& check_;
  std::vector<std::string>& warnings_;
  std::set<absl::string_view> warned_;
};

}  // namespace

const char* NameOf(FieldSupport support) {
  switch (support) {
    case FieldSupport::kWorks:
      return "works";
    case FieldSupport::kIgnored:
      return "ignored";
    case FieldSupport::kRefused:
      break;
  }
  return "refused";
}

absl::Span<const ConfigField> ConfigFields() { return kFields; }

absl::Status CheckFields(const inference::ModelConfig& config, const ConfigCheck& check,
                         std::vector<std::string>* warnings) {
  return Walk(check, warnings).Visit(config, "", "");
}

}  // namespace saccade::server
