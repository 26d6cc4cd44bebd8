// What config.pbtxt and the files beside it say of a model, checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/batching/batcher_options.h"
#include "server/core/inflight.h"
#include "server/core/items_form.h"
#include "server/core/tensor.h"

namespace saccade::server {

// What computes a model.
enum class Backend {
  // One of our architectures, by name.
  kSaccade,
  // A program that PyTorch exported.
  kPytorch,
  // Other models of the repository, one after the other.
  kEnsemble,
};

// "saccade", "pytorch", "ensemble".
const char* NameOf(Backend backend);

// A tensor that the configuration declares.
struct TensorSpec {
  enum class Format { kNone, kNhwc, kNchw };

  std::string name;
  DataType type = DataType::kFp32;
  // Without the batch dimension where the model has one; -1 where the request decides.
  std::vector<int64_t> dims = {};
  // What the model itself takes or gives in place of `dims`: as many elements, batch dimension apart.
  std::optional<std::vector<int64_t>> reshape = std::nullopt;
  Format format = Format::kNone;
  // An input that a request may leave out.
  bool optional = false;
  // An output's class names, by index; empty without a label file.
  std::vector<std::string> labels = {};
};

struct EnsembleStep {
  std::string model;
  // 0 is the highest version that is ready.
  int64_t version = 0;
  // From the model's input to the ensemble's tensor that feeds it; from the model's output to the ensemble's
  // tensor that it makes.
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
};

struct WarmupInput {
  enum class Data { kZero, kRandom, kFile };

  std::string name;
  DataType type = DataType::kFp32;
  // Without the batch dimension, each at least 1.
  std::vector<int64_t> dims;
  Data data = Data::kZero;
  // kFile: canonical and inside the repository; the tensor's bytes as a request would have them, of one item
  // of the batch.
  std::string file_path = {};
};

// A request that is computed before the model is ready.
struct Warmup {
  std::string name;
  int64_t batch_size = 1;
  int count = 1;
  // By name.
  std::vector<WarmupInput> inputs;
};

// Which of the versions on disk are served.
struct VersionPolicy {
  enum class Kind { kLatest, kAll, kSpecific };

  Kind kind = Kind::kLatest;
  // kLatest: so many of the highest.
  int64_t latest = 1;
  // kSpecific: ascending.
  std::vector<int64_t> versions = {};
};

// In place of a GPU's number: one such instance on every GPU that there is.
constexpr int kEveryGpu = -1;

struct ModelSettings {
  std::string name;
  Backend backend = Backend::kSaccade;
  // Of backend saccade alone.
  std::string architecture = {};
  // Every parameter that the repository does not use itself. The backend refuses the ones it does not know.
  std::map<std::string, std::string> options = {};
  // The classes' names by index; empty if the model has no labels file.
  std::vector<std::string> labels = {};
  // As the configuration declares them. Backend saccade says itself what it takes, and has none here.
  std::vector<TensorSpec> inputs = {};
  std::vector<TensorSpec> outputs = {};
  // Of backend ensemble: at least one. Every tensor that a step or an output names is made by a step before
  // it, or is an input.
  std::vector<EnsembleStep> ensemble = {};
  std::vector<Warmup> warmups = {};
  VersionPolicy version_policy = {};
  // Names that requests may use for versions, "stable" for 3.
  std::map<std::string, int64_t> version_labels = {};
  // Whether answers may be given again for equal requests.
  bool response_cache = false;
  // How much of the cache they may take; 0 is all of it.
  int64_t most_cached_bytes = 0;
  // Copies of the model that compute at the same time, 1 to 64; as many on each GPU where every GPU is meant.
  int instances = 1;
  // The GPU of each instance, as many as there are; empty: they compute on the CPU.
  std::vector<int> gpus = {};
  // Whether each instance keeps to cores of its own.
  bool pin = false;
  // Whether tensors have a batch dimension. Without one (max_batch_size 0) a request is one item, and
  // batching.max_batch_size is 1.
  bool has_batch_dimension = true;
  // max_queue_size 0 takes the daemon's own bound, threads 0 the daemon's --threads-per-instance.
  BatcherOptions batching = {.max_queue_size = 0, .threads = 0};
  // Whether answers leave in the order in which their requests came.
  bool preserve_ordering = false;
  // How its detections or actions share tensors.
  ItemsForm items = ItemsForm::kPadded;
  // How much of this model's may be in flight; 0 leaves it to the server's own bounds.
  Inflight most_inflight = {};

  // What the configuration asks for and is passed over, one sentence each: they belong in the log.
  std::vector<std::string> warnings = {};
  // An inference.ModelConfig, serialised: the configuration as it was read, with name, backend, platform and
  // max_batch_size as they are understood.
  std::string config = {};
};

// Puts instances on GPUs 0 to `gpus` - 1 where the configuration says every GPU. Where there is none they are
// on the first, and whoever loads them says that it is missing.
void PlaceOnEveryGpu(int gpus, ModelSettings* settings);

}  // namespace saccade::server
