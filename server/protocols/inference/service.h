// inference.GRPCInferenceService: the Open Inference Protocol, with Triton's extensions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/core/clock.h"
#include "server/engine/pipeline.h"
#include "server/grpc/call.h"
#include "server/grpc/unary.h"
#include "server/inference/inference.h"
#include "server/net/work_pool.h"
#include "server/protocols/retry_jitter.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {

// Thread-safe; no call blocks.
class InferenceService {
 public:
  struct Options {
    std::string server_name;
    std::string server_version;
    // Larger answers become errors that say so.
    int64_t max_message_bytes = 0;
    // Spreads the retry hints of rejections.
    RetryJitter* retry_jitter = nullptr;
    // Reads large requests, and signs large answers. Null: the thread that has them does.
    WorkPool* pool = nullptr;
    // Whether the daemon is ready as a whole. Called on any thread.
    std::function<bool()> ready;
  };

  // All must outlive the service.
  struct Deps {
    Inference* inference;
    Pipeline* pipeline;
    Catalog* catalog;
    SharedMemory* shared_memory;
    Clock* clock;
  };

  InferenceService(Options options, const Deps& deps) : options_(std::move(options)), deps_(deps) {}

  // The service must outlive the methods and their calls.
  std::vector<CallMethod> Methods();

 private:
  using CallMethods = std::vector<CallMethod>;

  // service.cc
  void AddHealth(CallMethods& methods);
  void AddMetadata(CallMethods& methods);
  void ModelInfer(std::shared_ptr<UnaryCall> call, BytePieces received);

  // extensions.cc
  // Configuration and statistics of models.
  void AddModelFacts(CallMethods& methods);
  void AddSystemSharedMemory(CallMethods& methods);
  void AddCudaSharedMemory(CallMethods& methods);
  static void AddSettings(CallMethods& methods);

  // repository.cc
  void AddRepository(CallMethods& methods);

  const Options options_;
  const Deps deps_;
};

// "/inference.GRPCInferenceService/ModelInfer" for "ModelInfer".
std::string InferencePath(const char* method);

}  // namespace saccade::server
