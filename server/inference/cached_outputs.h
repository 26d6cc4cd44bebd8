// What a cached answer holds, and how the answers to different requests are cut from it: an entry of the
// cache belongs to the inputs alone, and holds whole outputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/api/description.h"
#include "server/core/tensor_call.h"
#include "server/repository/model_settings.h"

namespace saccade::server {

// The outputs of a model as its cached answers need them, in the model's order.
struct OutputFacts {
  std::string name;
  // Whether it is returned if the request names no outputs.
  bool unasked = true;
  // Names of the indices of its last extent; empty if they have none.
  const std::vector<std::string>* labels = nullptr;
};

// REQUIRES for both: the argument outlives the result.
std::vector<OutputFacts> FactsOf(const ModelSettings& program);
std::vector<OutputFacts> FactsOf(const models::Description& network, ItemsForm form);

// The outputs to be computed for an entry from which `wanted` can be cut: the same ones, whole. All outputs
// of a program are computed in any case, so that its entries hold them all.
std::vector<WantedOutput> OutputsToCache(const std::vector<WantedOutput>& wanted, bool is_program);

// Selects `wanted`, or what is returned by default if that is empty, and makes classes of it where they are
// asked for. nullopt if `kept` lacks an output. INVALID_ARGUMENT as Classify. `batched` as there.
std::optional<absl::StatusOr<std::vector<Tensor>>> SelectOutputs(const std::vector<Tensor>& kept,
                                                                 const std::vector<WantedOutput>& wanted,
                                                                 const std::vector<OutputFacts>& facts,
                                                                 bool batched);

// The outputs of both, in the model's order; where both have one, that of `newer`.
std::vector<Tensor> Union(const std::vector<Tensor>& older, const std::vector<Tensor>& newer,
                          const std::vector<OutputFacts>& facts);

}  // namespace saccade::server
