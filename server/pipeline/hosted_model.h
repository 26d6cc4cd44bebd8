// A served model and whether anybody still uses it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "server/pipeline/served_model.h"

namespace saccade::server {

// Requests hold handles and never the model itself: it ends on the catalog's thread and on none of its own,
// whoever was the last to use it.
class HostedModel {
 public:
  // `released` is called once, on any thread and with none of the model's locks held, when the last handle
  // goes.
  HostedModel(std::unique_ptr<ServedModel> model, std::function<void()> released)
      : model_(std::move(model)), unused_(std::make_shared<std::atomic<bool>>(false)) {
    handle_ = std::shared_ptr<ServedModel>(model_.get(),
                                           [unused = unused_, released = std::move(released)](ServedModel*) {
                                             unused->store(true);
                                             released();
                                           });
  }

  ServedModel* model() const { return model_.get(); }
  // REQUIRES: LetGo was not called.
  const std::shared_ptr<ServedModel>& handle() const { return handle_; }
  // From here on it is used by those who have a handle, and by nobody new.
  void LetGo() { handle_.reset(); }
  bool unused() const { return unused_->load(); }

 private:
  const std::unique_ptr<ServedModel> model_;
  const std::shared_ptr<std::atomic<bool>> unused_;
  std::shared_ptr<ServedModel> handle_;
};

}  // namespace saccade::server
