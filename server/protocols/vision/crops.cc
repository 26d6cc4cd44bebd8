#include "server/protocols/vision/crops.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/admission/client_crops.h"
#include "server/batching/batch_task.h"
#include "server/core/errors.h"
#include "server/core/inline_passes.h"
#include "server/core/shed_reason.h"
#include "server/core/starting_threads.h"
#include "server/engine/counted_call.h"
#include "server/engine/cut_parts.h"
#include "server/ensembles/step_error.h"
#include "server/inference/crop_models.h"
#include "server/protocols/vision/crop_answer.h"
#include "server/protocols/vision/errors.h"
#include "server/protocols/vision/messages.h"
#include "server/protocols/vision/results.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

// Crops are answered as a request without options is.
const v1::PredictRequest& NoOptions() {
  static const v1::PredictRequest* const kNone = new v1::PredictRequest();
  return *kNone;
}

// The whole pixels that a box with its padding touches, clipped to the picture, and at least one.
Region RegionAround(const v1::Detection::Box& box, double padding, int width, int height) {
  const double across = padding * (static_cast<double>(box.x_max()) - box.x_min());
  const double down = padding * (static_cast<double>(box.y_max()) - box.y_min());
  const auto within = [](double pixel, int max) {
    return static_cast<int>(std::clamp(pixel, 0.0, static_cast<double>(max)));
  };
  const int left = std::min(within(std::floor(box.x_min() - across), width), width - 1);
  const int top = std::min(within(std::floor(box.y_min() - down), height), height - 1);
  const int right = std::max(within(std::ceil(box.x_max() + across), width), left + 1);
  const int bottom = std::max(within(std::ceil(box.y_max() + down), height), top + 1);
  return {.x = left, .y = top, .width = right - left, .height = bottom - top};
}

bool HasCrops(const v1::Detection& detection, const CropRules& rules) {
  const std::vector<int64_t>& classes = rules.classes;
  return detection.score() >= rules.min_score &&
         (classes.empty() ||
          std::find(classes.begin(), classes.end(), detection.class_index()) != classes.end());
}

// True if the crop has no result, but other crops may have one.
bool IsOfOneCrop(const absl::Status& why) { return absl::IsInvalidArgument(why) || absl::IsInternal(why); }

// Adds the longer time of each stage: crops run at the same time.
void AddLonger(const Timings& one, Timings& longest) {
  longest.decode = std::max(longest.decode, one.decode);
  longest.queue = std::max(longest.queue, one.queue);
  longest.infer = std::max(longest.infer, one.infer);
  longest.encode = std::max(longest.encode, one.encode);
}

// The head of a call with the input's bytes, to be counted.
TensorCall ToCount(const Request& request) {
  TensorCall call;
  static_cast<CallHead&>(call) = request;
  for (const Picture& picture : std::get<std::vector<Picture>>(request.input)) {
    const std::string_view bytes = std::visit([](const auto& one) { return one.data.bytes; }, picture);
    call.inputs.push_back({.name = std::string(request.input_name), .shape = {}, .data = BytePieces(bytes)});
  }
  return call;
}

// A request of an ensemble with crops. Thread-safe.
class CropRun : public std::enable_shared_from_this<CropRun> {
 public:
  CropRun(Pipeline* pipeline, std::shared_ptr<ServedModel> ensemble, CropModels models, Request request,
          const VisionCall& call, PredictDone done)
      : pipeline_(pipeline),
        ensemble_(std::move(ensemble)),
        models_(std::move(models)),
        request_(std::move(request)),
        call_(call),
        done_(std::move(done)),
        counted_(pipeline->deps(), ensemble_->metrics(), ToCount(request_)),
        cancellation_(std::make_shared<Cancellation>(request_.cancellation)),
        answer_(call.max_bytes, call.around) {
    if (request_.record != nullptr) request_.record->SetVersion(ensemble_->version());
  }

  void Start() {
    absl::Status entered = Check();
    if (entered.ok()) {
      entered = counted_.Enter(ToCount(request_), ensemble_->name(), ensemble_->settings().max_inflight);
    }
    if (!entered.ok()) return End(std::move(entered), /*computed=*/false);
    ticket_ = counted_.TakeTicket();
    Detect();
  }

 private:
  // A crop that has not started.
  struct Job {
    size_t model = 0;
    // Index of its region.
    size_t region = 0;
    // In the answer.
    v1::Crop* crop = nullptr;
    // Among all jobs.
    size_t index = 0;
  };

  absl::Status Check() const {
    if (!request_.explain) return absl::OkStatus();
    return InvalidField("explain", absl::StrCat("is set, but model '", ensemble_->name(),
                                                "' is an ensemble; ask the models of its steps"));
  }

  // A request for a step's model.
  Request Step(const EnsembleStep& step) const {
    Request made = request_;
    made.model = step.model;
    made.version = step.version;
    made.arrival = pipeline_->deps().clock->Now();
    made.cancellation = std::make_shared<Cancellation>(cancellation_);
    made.nested = true;
    if (made.record != nullptr) {
      made.record = made.record->Step(made.arrival);
      made.record->Describe(made);
    }
    return made;
  }

  const std::vector<EnsembleStep>& steps() const { return ensemble_->settings().ensemble; }

  void Detect() {
    Request detect = Step(steps().front());
    detect.encodes_maps = call_.message->detection().masks() != v1::DetectionOptions::NONE;
    detect.encode = [this](Response& response) {
      if (!std::holds_alternative<models::Detections>(response.results.at(0)))
        return absl::UnavailableError("the model was replaced by one that does not detect");
      response.model = ensemble_->name();
      response.version = ensemble_->version();
      response.mask_pixels = &mask_pixels_;
      absl::Status made = ToMessage(response, *call_.message, call_.answer);
      if (made.ok()) response.answer_bytes = static_cast<int64_t>(call_.answer->ByteSizeLong());
      return made;
    };
    const std::shared_ptr<CallRecord> record = detect.record;
    // Not by its name: if it was unloaded meanwhile, a load of it would wait for the memory that this run
    // holds.
    pipeline_->PredictOn(
        models_.detector, std::move(detect),
        [run = shared_from_this(), record](const absl::StatusOr<Response>& outcome) {
          if (record != nullptr) record->End({.status = outcome.status()});
          run->Detected(outcome);
        },
        /*ticket=*/nullptr);
  }

  void Detected(const absl::StatusOr<Response>& outcome) {
    if (!outcome.ok()) {
      // Errors of the detector's input are about the client's own fields.
      const bool clients = absl::IsInvalidArgument(outcome.status());
      const std::string name = absl::StrCat("step of model '", steps().front().model, "'");
      return End(clients ? outcome.status() : WithStepName(outcome.status(), name),
                 absl::IsInternal(outcome.status()));
    }
    absl::Status fits;
    {
      absl::MutexLock lock(&mutex_);
      detecting_ = outcome->timings;
      batch_size_ = outcome->batch_size;
      MakeJobs();
      // Not before, so that requests that wait for the detector take no crops from the others.
      if (!jobs_.empty()) share_.emplace(&pipeline_->client_crops(), request_.client);
      // Until here `outcome` has the charge.
      fits = answer_.Add(static_cast<int64_t>(call_.answer->ByteSizeLong()), *ticket_);
      if (!jobs_.empty()) detected_ = pipeline_->deps().clock->Now();
    }
    if (!fits.ok()) return End(std::move(fits), /*computed=*/false);
    if (regions_.empty()) return Advance();
    const DecodeQueue::Order order = {.model = ensemble_->name(),
                                      .weight = ensemble_->settings().batching.weight,
                                      .client = request_.client,
                                      .priority = ensemble_->settings().batching.UrgencyOf(request_.priority),
                                      .deadline = request_.deadline};
    absl::Status scheduled = pipeline_->deps().decode_pool->Schedule(
        [run = shared_from_this()] { run->Cut(); }, order,
        [run = shared_from_this()](const absl::Status& why) { run->Fail(why, "cutting the crops"); });
    if (!scheduled.ok()) Fail(scheduled, "cutting the crops");
  }

  // Runs on the decode pool.
  void Cut() ABSL_LOCKS_EXCLUDED(mutex_) {
    const Pipeline::Deps& deps = pipeline_->deps();
    const BatchTask::Traits traits{
        .arrival = request_.arrival, .deadline = request_.deadline, .cancellation = request_.cancellation};
    const Picture& picture = std::get<std::vector<Picture>>(request_.input).front();
    auto parts = CutParts(picture, regions_, models_.detector->description().input, *deps.decoder, *ticket_,
                          [&] { return CheckAlive(traits, deps.clock->Now()); });
    if (!parts.ok()) return Fail(parts.status(), "cutting the crops");
    {
      absl::MutexLock lock(&mutex_);
      parts_ = *std::move(parts);
      detecting_.decode += deps.clock->Now() - detected_;
    }
    Advance();
  }

  // Ends the request when no crop runs any more.
  void Fail(const absl::Status& why, const std::string& step) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      SetFailure(WithStepName(why, step));
    }
    Advance();
  }

  void SetFailure(absl::Status why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!failure_.ok()) return;
    failure_ = std::move(why);
    cancellation_->Cancel();
    jobs_.clear();
  }

  // Adds the crops of all detections to the answer at once, so that none is moved while another is filled in.
  void MakeJobs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const CropRules& rules = models_.rules;
    int64_t count = 0;
    for (v1::Detection& detection : *call_.answer->mutable_detections()->mutable_detections()) {
      if (count == rules.max) break;
      if (!HasCrops(detection, rules)) continue;
      ++count;
      const Region region = RegionAround(detection.box(), rules.padding, call_.answer->picture_width(),
                                         call_.answer->picture_height());
      for (size_t i = 0; i < rules.models.size(); ++i) {
        v1::Crop* const crop = detection.add_crops();
        crop->set_model(rules.models[i]);
        crop->set_version(models_.models[i]->version());
        crop->mutable_region()->set_x(region.x);
        crop->mutable_region()->set_y(region.y);
        crop->mutable_region()->set_width(region.width);
        crop->mutable_region()->set_height(region.height);
        jobs_.push_back({.model = i, .region = regions_.size(), .crop = crop, .index = jobs_.size()});
      }
      regions_.push_back(region);
    }
    seen_.resize(jobs_.size());
    // The best detections come first, and jobs are taken from the end.
    std::reverse(jobs_.begin(), jobs_.end());
  }

  // Starts the crops for which there is room one after the other on this thread, unless a call of Advance()
  // below is doing so on it (StartingThreads). None of them waits for another's pass, even if a pass is short
  // enough to be computed here. Ends the request if no crop is left.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      if (!starting_.Enter()) return;
    }
    while (StartNext()) {
    }
    bool finished = false;
    {
      const absl::MutexLock lock(&mutex_);
      starting_.Leave();
      finished = jobs_.empty() && running_ == 0 && !std::exchange(finished_, true);
    }
    if (finished) Finish();
  }

  // Starts a crop, which fails if that throws. False if none is left, or there is no room. Does not throw.
  bool StartNext() ABSL_LOCKS_EXCLUDED(mutex_) {
    Job job;
    bool last = false;
    {
      const absl::MutexLock lock(&mutex_);
      if (jobs_.empty() || !share_->Start()) return false;
      job = jobs_.back();
      jobs_.pop_back();
      ++running_;
      last = jobs_.empty() || !share_->HasRoom();
    }
    try {
      const LimitInlinePasses limit(last ? InlinePasses::kOwn : InlinePasses::kNone);
      // Fails the crop if the pipeline drops it, or if this function throws.
      const std::shared_ptr<const void> answerer(
          nullptr, [run = shared_from_this(), job](const void*) { run->EndUnseen(job); });
      See(job, PartOf(job), answerer);
    } catch (...) {
      // `answerer` tells the client.
    }
    return true;
  }

  RawPicture PartOf(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return parts_.at(job.region);
  }

  void See(const Job& job, const RawPicture& part, const std::shared_ptr<const void>& answerer) {
    Request see = Step(steps().at(job.model + 1));
    see.input = std::vector<Picture>{part};
    see.input_name = "crop";
    // Those of the request were for the detector.
    see.region.reset();
    see.tiles.reset();
    see.charged_bytes = 0;
    see.accepts = nullptr;
    // NoOptions() asks for masks.
    see.encodes_maps = true;
    see.encode = [this, job](Response& response) {
      // Results lie in the whole picture.
      SentItem& sent = response.sent.at(0);
      sent.region = regions_[job.region];
      sent.width = call_.answer->picture_width();
      sent.height = call_.answer->picture_height();
      response.mask_pixels = &mask_pixels_;
      return SetCrop(response, job.crop);
    };
    const std::shared_ptr<CallRecord> record = see.record;
    pipeline_->PredictOn(
        models_.models.at(job.model), std::move(see),
        [run = shared_from_this(), record, job, answerer](const absl::StatusOr<Response>& outcome) {
          if (record != nullptr) record->End({.status = outcome.status()});
          run->Seen(job, outcome);
        },
        /*ticket=*/nullptr);
  }

  absl::Status SetCrop(const Response& response, v1::Crop* crop) ABSL_LOCKS_EXCLUDED(mutex_) {
    v1::PredictResponse made;
    if (absl::Status set = SetResult(response, NoOptions(), &made); !set.ok()) return set;
    if (absl::Status fits = AddToAnswer(static_cast<int64_t>(made.ByteSizeLong())); !fits.ok()) return fits;
    crop->set_version(response.version);
    switch (made.result_case()) {
      case v1::PredictResponse::kClassification:
        crop->mutable_classification()->Swap(made.mutable_classification());
        return absl::OkStatus();
      case v1::PredictResponse::kDetections:
        crop->mutable_detections()->Swap(made.mutable_detections());
        return absl::OkStatus();
      case v1::PredictResponse::kEmbedding:
        crop->mutable_embedding()->Swap(made.mutable_embedding());
        return absl::OkStatus();
      default:
        return absl::UnavailableError("the model was replaced by one of a task that crops do not have");
    }
  }

  // Ends the request if its answer would be too large, because no other crop could be added either.
  absl::Status AddToAnswer(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    absl::Status fits = answer_.Add(bytes, *ticket_);
    // Here, because the failure of a crop would be told with the name of its model.
    if (!fits.ok()) SetFailure(fits);
    return fits;
  }

  // The first call for a crop counts.
  void Seen(const Job& job, const absl::StatusOr<Response>& outcome) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (seen_[job.index]) return;
      seen_[job.index] = true;
      --running_;
      share_->End();
      try {
        Keep(job, outcome);
      } catch (...) {
        SetFailure(ErrorOfException());
      }
    }
    Advance();
  }

  void Keep(const Job& job, const absl::StatusOr<Response>& outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (outcome.ok()) {
      AddLonger(outcome->timings, seeing_);
    } else if (IsOfOneCrop(outcome.status())) {
      job.crop->set_error(std::string(outcome.status().message()));
    } else {
      SetFailure(WithStepName(outcome.status(),
                              absl::StrCat("crop for model '", models_.rules.models[job.model], "'")));
    }
  }

  // For a crop that will not be answered otherwise. Does not throw.
  void EndUnseen(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      if (seen_[job.index]) return;
    }
    try {
      Seen(job, absl::InternalError("the server dropped the crop because of an error of its own"));
    } catch (...) {
      // The client is told when the run is destroyed with its last crop.
    }
  }

  void Finish() ABSL_LOCKS_EXCLUDED(mutex_) {
    Response response;
    absl::Status failure;
    {
      absl::MutexLock lock(&mutex_);
      failure = failure_;
      response.timings = {.decode = detecting_.decode + seeing_.decode,
                          .queue = detecting_.queue + seeing_.queue,
                          .infer = detecting_.infer + seeing_.infer,
                          .encode = detecting_.encode + seeing_.encode,
                          .total = pipeline_->deps().clock->Now() - request_.arrival};
      response.charge = answer_.Finish(static_cast<int64_t>(call_.answer->ByteSizeLong()), *ticket_);
      response.batch_size = batch_size_;
    }
    if (failure.ok()) failure = CheckSize(*call_.answer, call_.max_bytes, call_.around + kMaxTimings);
    if (!failure.ok()) return End(std::move(failure), /*computed=*/false);
    ensemble_->metrics()->RecordBatch(1, response.timings.infer);
    End(std::move(response), /*computed=*/true);
  }

  void End(absl::StatusOr<Response> outcome, bool computed) {
    // The steps do not count that themselves.
    if (absl::IsCancelled(outcome.status())) pipeline_->deps().metrics->RecordShed(ShedReason::kCancelled);
    // The rest is held until the answer is sent.
    if (ticket_ != nullptr) ticket_->ReturnRequest();
    counted_.End(outcome.status().code(), computed, outcome.ok() ? 1 : 0,
                 outcome.ok() ? outcome->timings : Timings{});
    std::move(done_)(std::move(outcome));
  }

  Pipeline* const pipeline_;
  const std::shared_ptr<ServedModel> ensemble_;
  // They compute all steps, also after they were replaced or unloaded.
  const CropModels models_;
  const Request request_;
  const VisionCall call_;
  PredictDone done_;
  CountedCall counted_;
  // Parent of all steps' cancellations, and cancelled with the client's.
  const std::shared_ptr<Cancellation> cancellation_;
  // Null until the request is admitted.
  std::shared_ptr<Admission::Ticket> ticket_;
  // One for each detection with crops. Set before crops run, and then only read.
  std::vector<Region> regions_;
  // Pixels of all masks of the answer (Response::mask_pixels).
  std::atomic<int64_t> mask_pixels_{0};

  absl::Mutex mutex_;
  // The pixels of `regions_`.
  std::vector<RawPicture> parts_ ABSL_GUARDED_BY(mutex_);
  // When the detector had answered.
  absl::Time detected_ ABSL_GUARDED_BY(mutex_);
  std::vector<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  // By Job::index: whether the crop has ended.
  std::vector<bool> seen_ ABSL_GUARDED_BY(mutex_);
  // Crops in flight.
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set if the request has crops.
  std::optional<ClientCrops::Share> share_ ABSL_GUARDED_BY(mutex_);
  StartingThreads starting_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Timings detecting_ ABSL_GUARDED_BY(mutex_);
  // The longest of each stage over all crops.
  Timings seeing_ ABSL_GUARDED_BY(mutex_);
  int64_t batch_size_ ABSL_GUARDED_BY(mutex_) = 0;
  CropAnswer answer_ ABSL_GUARDED_BY(mutex_);
};

using FoundModel = absl::StatusOr<std::shared_ptr<ServedModel>>;

// Runs the request if `model`, which it names, is an ensemble with crops. Otherwise returns false and leaves
// it as it is.
bool RunWithCrops(Pipeline* pipeline, const Catalog& catalog, const FoundModel& model, Request& request,
                  const VisionCall& call, PredictDone& done) {
  // Tensors are not sent over saccade.v1.
  if (!std::holds_alternative<std::vector<Picture>>(request.input)) return false;
  if (!model.ok() || (*model)->ensemble() == nullptr) return false;
  absl::Status allowed = pipeline->CheckModel(request);
  auto models = allowed.ok() ? FindCropModels(*(*model)->ensemble(), catalog)
                             : absl::StatusOr<std::optional<CropModels>>(std::move(allowed));
  if (models.ok() && !*models) return false;
  if (!models.ok()) {
    pipeline->CountNotFound(request.protocol, models.status());
    std::move(done)(models.status());
    return true;
  }
  std::make_shared<CropRun>(pipeline, *model, **std::move(models), std::move(request), call, std::move(done))
      ->Start();
  return true;
}

// A request whose model is being loaded.
struct Waiting {
  Request request;
  PredictDone done;
};

void PredictOn(Pipeline* pipeline, const Catalog& catalog, const FoundModel& model, Request request,
               const VisionCall& call, PredictDone done) {
  if (RunWithCrops(pipeline, catalog, model, request, call, done)) return;
  request.encodes_maps = call.message->detection().masks() != v1::DetectionOptions::NONE;
  request.encode = [call](Response& made) {
    absl::Status set = SetAnswer(made, *call.message, call.max_bytes, call.answer, call.around);
    if (set.ok()) made.answer_bytes = static_cast<int64_t>(call.answer->ByteSizeLong());
    return set;
  };
  pipeline->Predict(std::move(request), std::move(done));
}

}  // namespace

void PredictVision(Pipeline* pipeline, const Catalog* catalog, Request request, const VisionCall& call,
                   PredictDone done) {
  const FoundModel model = catalog->FindReady(request.model, request.version);
  const bool may_wait = absl::IsUnavailable(model.status()) && pipeline->CheckModel(request).ok();
  if (!may_wait) return PredictOn(pipeline, *catalog, model, std::move(request), call, std::move(done));
  // Only when it is loaded, the model says whether it is an ensemble.
  auto waiting = std::make_shared<Waiting>(Waiting{std::move(request), std::move(done)});
  const auto go_on = [pipeline, catalog, call, waiting] {
    const FoundModel loaded = catalog->FindReady(waiting->request.model, waiting->request.version);
    PredictOn(pipeline, *catalog, loaded, std::move(waiting->request), call, std::move(waiting->done));
  };
  ModelFinder::Resume resume = [pipeline, waiting, go_on](const absl::Status& loaded) {
    if (loaded.ok()) return go_on();
    // The pipeline would wait for the model once more.
    pipeline->CountNotFound(waiting->request.protocol, loaded);
    std::move(waiting->done)(loaded);
  };
  if (!catalog->AwaitModel(waiting->request, resume)) go_on();
}

absl::StatusOr<std::shared_ptr<ServedModel>> TaskModelOf(const Catalog& catalog,
                                                         std::shared_ptr<ServedModel> model) {
  if (model->ensemble() == nullptr) return model;
  auto models = FindCropModels(*model->ensemble(), catalog);
  if (!models.ok()) return models.status();
  return *models ? std::move((**models).detector) : nullptr;
}

ModelSnapshot WithTask(const Catalog& catalog, ModelSnapshot snapshot) {
  if (!snapshot.ensemble || snapshot.state != ModelSnapshot::State::kReady) return snapshot;
  const auto model = catalog.FindReady(snapshot.name, snapshot.version);
  if (!model.ok()) return snapshot;
  const auto of_task = TaskModelOf(catalog, *model);
  if (!of_task.ok() || *of_task == nullptr) return snapshot;
  const std::string architecture = snapshot.description.architecture;
  snapshot.description = (*of_task)->description();
  snapshot.description.architecture = architecture;
  // Attention is asked of the detector itself.
  snapshot.description.attention_layers.clear();
  snapshot.description.attention_by_position = false;
  snapshot.ensemble = false;
  return snapshot;
}

}  // namespace saccade::server
