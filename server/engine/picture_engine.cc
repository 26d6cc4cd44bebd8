#include "server/engine/picture_engine.h"

#include <functional>
#include <utility>

#include "server/engine/forward.h"
#include "server/engine/graph_threads.h"
#include "server/engine/network_input.h"
#include "server/engine/tile_items.h"
#include "server/engine/warm_up.h"

namespace saccade::server {
namespace {

ResultMap MapOf(models::Task task) {
  if (task == models::Task::kSegmentation) return ResultMap::kLabels;
  const bool has_floats = task == models::Task::kStereo || task == models::Task::kDepth;
  return has_floats ? ResultMap::kFloats : ResultMap::kNone;
}

class PictureEngine final : public Engine {
 public:
  PictureEngine(std::unique_ptr<models::Model> model, const ModelSettings& settings)
      : model_(std::move(model)), settings_(settings) {}

  const models::Description& description() const override { return model_->description(); }

  const char* items_name() const override {
    switch (input().medium) {
      case models::Medium::kClip:
        return "clips";
      case models::Medium::kVolume:
        return "volumes";
      case models::Medium::kPictures:
        break;
    }
    return input().views == 2 ? "stereo pairs" : "pictures";
  }

  absl::Status Check(const Request& request) const override {
    if (absl::Status fits = CheckInput(request, settings_.name, input()); !fits.ok()) return fits;
    return CheckTiles(request, settings_.name, description(), TilesFor(request, settings_.tiles));
  }

  absl::Status Prepare(PredictCall& call, const Decoder& decoder, Clock* clock) const override {
    if (absl::Status taken = call.AddDecodedBytes(call.request().map_bytes); !taken.ok()) return taken;
    return MakeItems(call, input(), decoder, clock, TilesFor(call.request(), settings_.tiles),
                     MapOf(description().task));
  }

  std::function<absl::Status()> WarmUpPass(int64_t size) const override {
    LeaveCoresToGraph(settings_);
    return server::WarmUpPass(*model_, models::PlacementsToWarm(input()).front(), size);
  }

  absl::Status WarmUp(const WarmUpOptions& options) const override {
    LeaveCoresToGraph(settings_);
    return WarmUpNetwork(*model_, settings_, options);
  }

  PassEnd Compute(Shares batch, Clock* clock, ModelMetrics* metrics,
                  const std::function<void()>& advanced) const override {
    LeaveCoresToGraph(settings_);
    return ComputeBatch(*model_, std::move(batch), clock, metrics, advanced);
  }

 private:
  const models::ImageInput& input() const { return model_->description().input; }

  const std::unique_ptr<models::Model> model_;
  const ModelSettings& settings_;
};

}  // namespace

std::unique_ptr<Engine> MakePictureEngine(std::unique_ptr<models::Model> model,
                                          const ModelSettings& settings) {
  return std::make_unique<PictureEngine>(std::move(model), settings);
}

}  // namespace saccade::server
