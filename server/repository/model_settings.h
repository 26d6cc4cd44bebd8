// A model's settings, as read from config.pbtxt and the files beside it, and checked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/tasks/tiles.h"
#include "server/batching/batcher_options.h"
#include "server/core/inflight.h"
#include "server/core/items_form.h"
#include "server/core/shadow_rule.h"
#include "server/core/tensor.h"

namespace saccade::models {
struct PictureProgram;
}

namespace saccade::server {

// What runs a model.
enum class Backend {
  // One of Saccade's own architectures, by name.
  kSaccade,
  // A program exported from PyTorch.
  kPytorch,
  // A graph of operators, computed by OpenVINO: ONNX under the name of Triton's backend for it, and
  // OpenVINO's
  // IR or ONNX.
  kOnnxruntime,
  kOpenvino,
  // A sequence of other models of the repository.
  kEnsemble,
};

// "saccade", "pytorch", "onnxruntime", "openvino", "ensemble".
const char* NameOf(Backend backend);

// The platform that Triton's configurations have for the backend; "" if there is none.
const char* PlatformOf(Backend backend);

// Whether the model's file is a graph: data, which needs no permission to run.
constexpr bool IsGraph(Backend backend) {
  return backend == Backend::kOnnxruntime || backend == Backend::kOpenvino;
}

// Whether the model's file is a network of its own, a program or a graph, and its tensors are those of the
// configuration or of a description.
constexpr bool RunsFile(Backend backend) { return backend == Backend::kPytorch || IsGraph(backend); }

// A tensor declared in the configuration.
struct TensorSpec {
  enum class Format { kNone, kNhwc, kNchw };

  std::string name;
  DataType type = DataType::kFp32;
  // Without the batch dimension, if the model has one; -1 where the request decides.
  std::vector<int64_t> dims = {};
  // The shape that the model itself takes or returns instead of `dims`: the same number of elements, without
  // the batch dimension.
  std::optional<std::vector<int64_t>> reshape = std::nullopt;
  Format format = Format::kNone;
  // An input that a request may omit.
  bool optional = false;
  // Class names of an output, by index; empty without a label file.
  std::vector<std::string> labels = {};
};

struct EnsembleStep {
  std::string model;
  // 0 selects the highest version that is ready.
  int64_t version = 0;
  // `inputs` maps the model's inputs to the ensemble's tensors that feed them, `outputs` the model's outputs
  // to the ensemble's tensors that they make.
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
};

struct WarmupInput {
  enum class Data { kZero, kRandom, kFile };

  std::string name;
  DataType type = DataType::kFp32;
  // Without the batch dimension; each at least 1.
  std::vector<int64_t> dims;
  Data data = Data::kZero;
  // kFile: canonical path inside the repository. The file holds the tensor's bytes as in a request, for one
  // item of the batch.
  std::string file_path = {};
};

// A request that is computed before the model is ready.
struct Warmup {
  std::string name;
  int64_t batch_size = 1;
  int count = 1;
  // Sorted by name.
  std::vector<WarmupInput> inputs;
};

// Selects the versions on disk that are served.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };

  Kind kind = Kind::kLatest;
  // kLatest: number of highest versions.
  int64_t latest = 1;
  // kSpecific: ascending.
  std::vector<int64_t> versions = {};
};

// What a model's instances and their threads are chosen for, by trial.
enum class Optimize {
  // The time of a single pass.
  kLatency,
  // The number of items in a second.
  kThroughput,
};

// "latency" or "throughput".
const char* NameOf(Optimize optimize);

// In place of a GPU's number: one such instance on every GPU of the machine.
constexpr int kEveryGpu = -1;

struct ModelSettings {
  std::string name;
  Backend backend = Backend::kSaccade;
  // The repository's path. Empty in tests that make settings themselves.
  std::string repository = {};
  // Whether the configuration was part of a request, in place of config.pbtxt.
  bool from_request = false;
  // Only for backend saccade.
  std::string architecture = {};
  // All parameters that the repository does not use itself. The backend rejects those that it does not know.
  std::map<std::string, std::string> options = {};
  // Class names by index; empty if the model has no labels file.
  std::vector<std::string> labels = {};
  // For a program or a graph: makes it a model of pictures. Null if it takes named tensors from the client.
  std::shared_ptr<const models::PictureProgram> pictures = nullptr;
  // The text of the files that `pictures` was read from.
  std::string pictures_text = {};
  // As declared in the configuration. Empty for backend saccade, where the architecture defines them, and for
  // programs with `pictures`.
  std::vector<TensorSpec> inputs = {};
  std::vector<TensorSpec> outputs = {};
  // For backend ensemble: at least one step. Each tensor that a step or an output names is an input, or is
  // made by an earlier step.
  std::vector<EnsembleStep> ensemble = {};
  std::vector<Warmup> warmups = {};
  VersionPolicy version_policy = {};
  // Names for versions that requests may use, e.g. "stable" for 3.
  std::map<std::string, int64_t> version_labels = {};
  // Whether answers may be reused for equal requests.
  bool response_cache = false;
  // Maximum bytes of the response cache that the model may use; 0 means all of it.
  int64_t max_cached_bytes = 0;
  // Number of instances that compute concurrently, 1 to 64; with kEveryGpu, per GPU.
  int instances = 1;
  // Whether the configuration says so.
  bool has_instances = false;
  // Only on the CPU. Unset: the threads are a compromise between both, and the instances as configured.
  std::optional<Optimize> optimize = std::nullopt;
  // The GPU of each instance, `instances` elements; empty if they compute on the CPU.
  std::vector<int> gpus = {};
  // Whether each instance has cores of its own.
  bool pin = false;
  // Whether tensors have a batch dimension. Without it (max_batch_size 0) a request is one item, and
  // batching.max_batch_size is 1.
  bool has_batch_dimension = true;
  // max_queue_size 0 means the daemon's default, threads 0 the daemon's --threads-per-instance.
  BatcherOptions batching = {.max_queue_size = 0, .threads = 0};
  // Whether answers are sent in the order in which their requests arrived.
  bool preserve_ordering = false;
  // How pictures are cut if a request does not say; a size of 0 means that they are not.
  models::TileRules tiles = {};
  // Whether a request fails if an output of a program has another shape than the configuration says.
  // Otherwise the client gets it as it is.
  bool strict_output_shapes = false;
  // How detections or actions share tensors.
  ItemsForm items = ItemsForm::kPadded;
  // Files that stand for what the model will be sent, sorted: pictures, videos or volumes; for stereo, left
  // and right alternate.
  std::vector<std::string> samples = {};
  // With the option `precision` set to auto: how much of the answers to the samples bfloat16 may change, 0
  // to 1.
  double max_precision_loss = 0.005;
  // How many items are compared with earlier ones (server/drift); 0 means that none are.
  int64_t drift_window = 0;
  // Unset: no version computes copies of others' requests.
  std::optional<ShadowRule> shadow = std::nullopt;
  // As configured; ReadModel() moves it to `shadow`.
  std::optional<PromoteRule> promote = std::nullopt;
  // That a shadow version was promoted: it answers requests that name no version, and `shadow` is unset.
  std::optional<Promotion> promotion = std::nullopt;
  // Whether each answer carries a signed statement of what it was computed from.
  bool attest = false;
  // Bounds on what is in flight for this model; 0 means only the server's bounds apply.
  Inflight max_inflight = {};

  // Sentences for the log about settings that are ignored.
  std::vector<std::string> warnings = {};
  // A serialised inference.ModelConfig: the configuration as read, with the effective name, backend, platform
  // and max_batch_size.
  std::string config = {};
};

// Replaces kEveryGpu by instances on GPUs 0 to `gpus` - 1. If there is no GPU, places them on GPU 0, and
// loading the model reports that it is missing.
void PlaceOnEveryGpu(int gpus, ModelSettings* settings);

}  // namespace saccade::server
