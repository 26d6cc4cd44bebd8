// A served model, and whether it is still in use.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "server/catalog/served_model.h"

namespace saccade::server {

// Requests hold handles, which do not own the model. Whichever thread drops the last handle, the model is
// destroyed on the catalog's thread and never on one of its own threads.
class HostedModel {
 public:
  // `released` is called once when the last handle is dropped, on any thread, without a lock of the model
  // held.
  HostedModel(std::unique_ptr<ServedModel> model, std::function<void()> released)
      : model_(std::move(model)), unused_(std::make_shared<std::atomic<bool>>(false)) {
    handle_ = std::shared_ptr<ServedModel>(model_.get(),
                                           [unused = unused_, released = std::move(released)](ServedModel*) {
                                             unused->store(true);
                                             released();
                                           });
  }

  ServedModel* model() const { return model_.get(); }
  // REQUIRES: LetGo() was not called.
  const std::shared_ptr<ServedModel>& handle() const { return handle_; }
  // Stops giving out handles; the model can be freed once those that exist are dropped.
  void LetGo() { handle_.reset(); }
  bool unused() const { return unused_->load(); }

 private:
  const std::unique_ptr<ServedModel> model_;
  const std::shared_ptr<std::atomic<bool>> unused_;
  std::shared_ptr<ServedModel> handle_;
};

}  // namespace saccade::server
