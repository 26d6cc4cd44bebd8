// Whether a request's model is loaded, and what loads it.
#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/simulation/sim_task.h"

namespace saccade::server::simulation {

class ModelLoader {
 public:
  using Resume = absl::AnyInvocable<void(absl::Status) &&>;

  virtual ~ModelLoader() = default;

  virtual bool IsLoaded(int model) const = 0;
  // For a request whose model is not loaded. `resume` is called once, possibly before this returns: with OK
  // once the model is loaded, or with the error that answers the request.
  virtual void Await(const SimTask& task, Resume resume) = 0;
  // Ends the wait of requests that are cancelled or late.
  virtual void Sweep() = 0;
};

}  // namespace saccade::server::simulation
