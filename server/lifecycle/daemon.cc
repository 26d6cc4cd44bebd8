#include "server/lifecycle/daemon.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <iterator>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/common/cuda_ipc.h"
#include "kernels/common/cuda_plugin.h"
#include "server/admission/admission.h"
#include "server/cache/response_cache.h"
#include "server/catalog/catalog.h"
#include "server/catalog/memory_nodes.h"
#include "server/core/clock.h"
#include "server/core/numa_nodes.h"
#include "server/core/shed_reason.h"
#include "server/core/usable_cores.h"
#include "server/decode/decode_pool.h"
#include "server/engine/pipeline.h"
#include "server/inference/inference.h"
#include "server/lifecycle/attester_setup.h"
#include "server/lifecycle/capture_setup.h"
#include "server/lifecycle/check_instruction_set.h"
#include "server/lifecycle/decoder_setup.h"
#include "server/lifecycle/descriptors.h"
#include "server/lifecycle/environment.h"
#include "server/lifecycle/gpu_memory.h"
#include "server/lifecycle/observability.h"
#include "server/lifecycle/signals.h"
#include "server/lifecycle/state_folder.h"
#include "server/logging/log.h"
#include "server/metrics/metrics.h"
#include "server/page/page.h"
#include "server/protocols/inference/service.h"
#include "server/protocols/orca.h"
#include "server/protocols/rest/capture.h"
#include "server/protocols/rest/drift.h"
#include "server/protocols/rest/live_load.h"
#include "server/protocols/rest/openapi.h"
#include "server/protocols/rest/samples.h"
#include "server/protocols/rest/service.h"
#include "server/protocols/rest/shadow.h"
#include "server/protocols/rest/vision.h"
#include "server/protocols/retry_jitter.h"
#include "server/protocols/vision/service.h"
#include "server/security/certificates.h"
#include "server/security/tokens.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {
namespace {

// How often the main thread checks for failed loading and hung instances.
constexpr absl::Duration kTick = absl::Milliseconds(250);
// How long requests whose clients have gone may take to notice it, when the daemon ends without a drain.
constexpr absl::Duration kCancelTimeout = absl::Seconds(2);
// Threads for HTTP requests that block or take long.
constexpr int kMinWorkThreads = 2;
constexpr int kMaxWorkThreads = 8;
// Time to export the last spans, bounded because a collector may not respond.
constexpr absl::Duration kFlushTimeout = absl::Seconds(2);
// Maximum number of models that a line of the log names.
constexpr size_t kMaxNamedModels = 20;

// Called before any tensor exists. On a machine without a GPU, this only logs why the CPU is used.
void LoadGpuOperators() {
  const kernels::CudaPlugin& cuda = kernels::LoadCudaPlugin();
  if (cuda.loaded) {
    Log(LogLevel::kInfo, "CUDA operators loaded", {{"devices", cuda.devices}});
  } else {
    Log(LogLevel::kInfo, "serving on the CPU", {{"reason", cuda.reason}});
  }
}

int CoresOf(const Flags& flags) {
  const CoreLimits limits = ReadCoreLimits(AllowedProcessors());
  const int cores = flags.cores > 0 ? flags.cores : UsableCores(limits);
  Log(LogLevel::kInfo, "cores",
      {{"used", cores},
       {"allowed", limits.allowed},
       {"quota", limits.quota ? absl::StrCat(*limits.quota) : std::string("none")}});
  return cores;
}

}  // namespace

Daemon::Daemon(const Flags& flags) : flags_(flags), cores_(CoresOf(flags)) {}

Daemon::~Daemon() { Stop(); }

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Flags& flags) {
  // Protobuf would write a line to stderr for each text that is not UTF-8, on the thread that met it: clients
  // would decide how many, and who reads stderr slowly would stop that thread.
  google::protobuf::SetLogHandler(nullptr);
  std::unique_ptr<Daemon> daemon(new Daemon(flags));
  if (absl::Status known = LogInstructionSet(); !known.ok()) return known;
  LogSpinning();
  LoadGpuOperators();
  if (absl::Status secrets = daemon->OpenSecrets(); !secrets.ok()) return secrets;
  if (absl::Status created = daemon->CreateComponents(); !created.ok()) return created;
  if (absl::Status ports = daemon->OpenPorts(); !ports.ok()) return ports;
  std::printf("listening grpc=%s:%d http=%s:%d metrics=%s:%d\n", GrpcHost(flags).c_str(),
              daemon->front_->grpc_port(), HttpHost(flags).c_str(), daemon->front_->http_port(),
              MetricsHost(flags).c_str(), daemon->front_->metrics_port());
  std::fflush(stdout);
  try {
    daemon->StartLoading();
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("cannot load models: no thread is left");
  }
  return daemon;
}

absl::Status Daemon::OpenSecrets() {
  if (!flags_.security.tls.certificate.empty()) {
    auto certificates = Certificates::Open(flags_.security.tls);
    if (!certificates.ok()) return certificates.status();
    certificates_ = *std::move(certificates);
  }
  if (!flags_.security.token_file.empty()) {
    auto tokens = Tokens::Open(flags_.security.token_file);
    if (!tokens.ok()) return tokens.status();
    tokens_ = *std::move(tokens);
  }
  return absl::OkStatus();
}

void Daemon::ReloadChangedSecrets() {
  if (certificates_ != nullptr) certificates_->ReloadIfChanged();
  if (tokens_ == nullptr) return;
  const auto before = tokens_->known();
  tokens_->ReloadIfChanged();
  if (tokens_->known() != before) SetTokenQuotas();
  ReleaseWithdrawnRegions();
}

void Daemon::SetTokenQuotas() {
  const auto known = tokens_->known();
  ClientQuotaTable quotas;
  for (const KnownToken& token : *known) {
    if (token.requests_per_second == 0 && token.max_requests == 0) continue;
    quotas[token.key] = {.requests_per_second = token.requests_per_second,
                         .max_requests = token.max_requests};
  }
  admission_->SetClientQuotas(quotas);
}

void Daemon::ReleaseWithdrawnRegions() {
  const auto known = tokens_->known();
  absl::flat_hash_set<absl::string_view> keys;
  for (const KnownToken& token : *known) keys.insert(token.key);
  shared_memory_->KeepTokens(keys);
}

absl::Status Daemon::CreateComponents() {
  Clock* const clock = Clock::Real();
  metrics_ = std::make_unique<Metrics>(SACCADE_VERSION, flags_.latency_buckets);
  auto observability = Observability::Create(flags_, metrics_.get(), clock);
  if (!observability.ok()) return observability.status();
  observability_ = *std::move(observability);
  auto capturing = CaptureSetup::Create(flags_, metrics_.get(), clock);
  if (!capturing.ok()) return capturing.status();
  capturing_ = *std::move(capturing);
  auto attester = MakeAttester(flags_.attest_key, SACCADE_VERSION, clock);
  if (!attester.ok()) return attester.status();
  attester_ = *std::move(attester);
  auto admission = Admission::Create(flags_.admission, clock);
  if (!admission.ok()) return admission.status();
  admission_ = *std::move(admission);
  if (tokens_ != nullptr) SetTokenQuotas();
  if (absl::Status front = CreateFront(); !front.ok()) return front;
  if (flags_.response_cache_bytes > 0)
    response_cache_ = std::make_unique<ResponseCache>(flags_.response_cache_bytes);
  catalog_ = std::make_unique<Catalog>(
      CatalogOptions{.repositories = flags_.model_repositories,
                     .control = flags_.model_control,
                     .poll_interval = flags_.repository_poll,
                     .poll_jitter = flags_.repository_poll_jitter,
                     .load_at_start = flags_.load_models,
                     .load_on_demand = flags_.load_on_demand,
                     .idle_unload = flags_.idle_unload,
                     .max_model_bytes = flags_.max_model_bytes,
                     .complete_configurations = flags_.complete_configurations,
                     .unload_timeout = flags_.unload_timeout,
                     .default_max_queue_size = flags_.max_queue_size,
                     .cores = cores_,
                     .nodes = WithCores(ReadNumaNodes(AllowedProcessors())),
                     .threads_per_instance = flags_.threads_per_instance,
                     .warm_up = flags_.warm_up,
                     .state_folder = flags_.state_folder.value_or(DefaultStateFolder()),
                     .measured_on = {MachineName(cores_), BuildName(SACCADE_VERSION)},
                     .permissions = flags_.permissions,
                     .gpus = kernels::LoadCudaPlugin().devices,
                     .response_cache = response_cache_.get(),
                     .core_use = [meter = std::make_shared<CoreUseMeter>(
                                      AllowedProcessors(), cores_)] { return meter->Measure(); },
                     .check_ensemble = CheckSteps},
      clock, metrics_.get());
  if (absl::Status scan = catalog_->Scan(); !scan.ok()) return scan;
  const int decode_threads = flags_.decode_threads > 0 ? flags_.decode_threads : cores_;
  auto decoding = DecoderSetup::Create(flags_, decode_threads, metrics_.get(), clock);
  if (!decoding.ok()) return decoding.status();
  decoding_ = *std::move(decoding);
  auto pool =
      DecodePool::Create({.threads = decode_threads,
                          .max_pending = flags_.decode_queue,
                          .on_exception = [](const std::string& what) {
                            Log(LogLevel::kError, "a decode task threw an exception", {{"what", what}});
                          }});
  if (!pool.ok()) return pool.status();
  decode_pool_ = *std::move(pool);
  std::function<absl::Status(absl::string_view, absl::string_view)> check_model;
  if (tokens_ != nullptr) {
    check_model = [tokens = tokens_.get()](absl::string_view client, absl::string_view model) {
      return tokens->CheckModel(client, model);
    };
  }
  pipeline_ = std::make_unique<Pipeline>(Pipeline::Deps{.clock = clock,
                                                        .metrics = metrics_.get(),
                                                        .models = catalog_.get(),
                                                        .admission = admission_.get(),
                                                        .decode_pool = decode_pool_.get(),
                                                        .decoder = &decoding_->decoder(),
                                                        .watch = observability_->watch(),
                                                        .capture = capturing_->capture(),
                                                        .attester = attester_.get(),
                                                        .check_model = std::move(check_model)});
  CreateServices();
  metrics_->SetScrapeHook([this] { RefreshGauges(); });
  return absl::OkStatus();
}

absl::Status Daemon::CreateFront() {
  retry_jitter_ = std::make_unique<RetryJitter>(std::random_device()());
  Front::Options options;
  options.grpc = {GrpcHost(flags_), flags_.grpc_port};
  options.http = {HttpHost(flags_), flags_.http_port};
  options.metrics = {MetricsHost(flags_), flags_.metrics_port};
  options.plain_metrics = flags_.security.plain_metrics;
  options.network_threads = NetworkThreads(flags_.front, cores_);
  options.work_threads = std::clamp(cores_, kMinWorkThreads, kMaxWorkThreads);
  options.connections.max_connections = MaxConnections(flags_.front, RaiseFileLimit());
  options.connections.max_per_address = static_cast<size_t>(flags_.front.max_connections_per_address);
  options.connections.max_handshakes_per_second = static_cast<double>(flags_.front.max_handshakes_per_second);
  options.limits = flags_.front.limits;
  options.health = {flags_.front.max_health_watches, flags_.front.max_health_watches_per_client};
  options.origins.allowed_hosts = AllowedHosts(flags_.front, {options.grpc.host, options.http.host});
  options.metrics_origins.allowed_hosts = AllowedHosts(flags_.front, {options.metrics.host});
  options.max_message_bytes = flags_.max_message_bytes;
  options.always_report_load = flags_.orca_load_reports;
  CountRequest count_request;
  // With tokens also without the flag: a token may have a rate of its own.
  if (flags_.admission.clients.requests_per_second > 0 || tokens_ != nullptr) {
    count_request = [admission = admission_.get(), metrics = metrics_.get()](absl::string_view client) {
      absl::Status counted = admission->CountRequest(client);
      if (!counted.ok()) metrics->RecordShed(ShedReason::kClientRate);
      return counted;
    };
  }
  auto front =
      Front::Create(std::move(options), {.certificates = certificates_.get(),
                                         .tokens = tokens_.get(),
                                         .ledger = admission_.get(),
                                         .metrics = metrics_.get(),
                                         .retry_jitter = retry_jitter_.get(),
                                         .clock = Clock::Real(),
                                         .load_report = [this] { return OrcaLoadReport(metrics_->load()); },
                                         .count_request = std::move(count_request)});
  if (!front.ok()) return front.status();
  front_ = *std::move(front);
  readiness_.Attach([health = &front_->health()](const std::string& service, bool serving) {
    health->Set(service, serving);
  });
  return absl::OkStatus();
}

void Daemon::CreateServices() {
  Clock* const clock = Clock::Real();
  vision_ = std::make_unique<VisionService>(
      VisionService::Options{.max_message_bytes = flags_.max_message_bytes,
                             .max_stream_requests = flags_.max_stream_requests,
                             .upload_timeout = flags_.upload_timeout,
                             .min_upload_bytes_per_second = flags_.front.limits.min_bytes_per_second,
                             .retry_jitter = retry_jitter_.get(),
                             .pool = front_->message_pool()},
      pipeline_.get(), catalog_.get(), clock);
  shared_memory_ = std::make_unique<SharedMemory>(SharedMemory::Options{
      .allowed = flags_.allow_shared_memory,
      .max_tensor_bytes = static_cast<uint64_t>(flags_.max_message_bytes),
      .gpus = {.ipc = kernels::LoadCudaIpc(), .count = kernels::LoadCudaPlugin().devices}});
  inference_ = std::make_unique<Inference>(pipeline_.get(), catalog_.get(), shared_memory_.get(),
                                           StatusCodes(flags_.triton_status_codes));
  inference_service_ = std::make_unique<InferenceService>(
      InferenceService::Options{.server_name = flags_.id,
                                .server_version = SACCADE_VERSION,
                                .max_message_bytes = flags_.max_message_bytes,
                                .retry_jitter = retry_jitter_.get(),
                                .pool = front_->message_pool(),
                                .ready = [this] { return readiness_.ready(); }},
      InferenceService::Deps{.inference = inference_.get(),
                             .pipeline = pipeline_.get(),
                             .catalog = catalog_.get(),
                             .shared_memory = shared_memory_.get(),
                             .clock = clock});
  rest_ = std::make_unique<RestService>(RestService::Options{.server_name = flags_.id,
                                                             .server_version = SACCADE_VERSION,
                                                             .max_message_bytes = flags_.max_message_bytes,
                                                             .retry_jitter = retry_jitter_.get(),
                                                             .pool = front_->pool(),
                                                             .live = [this] { return readiness_.live(); },
                                                             .ready = [this] { return readiness_.ready(); }},
                                        RestService::Deps{.inference = inference_.get(),
                                                          .pipeline = pipeline_.get(),
                                                          .catalog = catalog_.get(),
                                                          .shared_memory = shared_memory_.get()});
  vision_rest_ =
      std::make_unique<VisionRest>(VisionRest::Options{.pipeline = pipeline_.get(),
                                                       .catalog = catalog_.get(),
                                                       .retry_jitter = retry_jitter_.get(),
                                                       .pool = front_->pool(),
                                                       .max_message_bytes = flags_.max_message_bytes});
}

void Daemon::RefreshGauges() {
  pipeline_->RefreshGauges(front_->health_bytes());
  catalog_->RefreshGauges();
  front_->RefreshMetrics();
  decoding_->RefreshMetrics();
  capturing_->RefreshGauges();
  metrics_->SetGpuMemoryUse(ReadGpuMemoryUse());
  metrics_->SetLostLogLines(CurrentLogLosses().queue_full, CurrentLogLosses().write_failed);
  if (certificates_ != nullptr) metrics_->SetCertificateExpiry(certificates_->current()->expires);
  if (response_cache_ != nullptr) metrics_->SetCached(response_cache_->bytes(), response_cache_->answers());
}

std::vector<HttpRoute> Daemon::HttpRoutes() {
  std::vector<HttpRoute> routes = rest_->Routes();
  const auto add = [&routes](std::vector<HttpRoute> more) {
    std::move(more.begin(), more.end(), std::back_inserter(routes));
  };
  add(vision_rest_->Routes());
  add({DriftRoute(catalog_.get(), retry_jitter_.get())});
  add(ShadowRoutes(catalog_.get(), retry_jitter_.get()));
  add(CaptureRoutes(capturing_->capture(), retry_jitter_.get()));
  if (flags_.page) {
    add(PageRoutes());
    add({LiveLoadRoute(catalog_.get(), pipeline_.get(),
                       {.max_message_bytes = flags_.max_message_bytes,
                        .grpc_port = flags_.grpc_port,
                        .server_version = SACCADE_VERSION,
                        .read_gpus = GpuReader(Nvml::Open())})});
    add(SampleRoutes({.catalog = catalog_.get(),
                      .ledger = admission_.get(),
                      .retry_jitter = retry_jitter_.get(),
                      .max_message_bytes = flags_.max_message_bytes}));
  }
  return routes;
}

// The metrics port has the health routes too: with --plain-metrics, probes reach them without a certificate,
// which kubelets do not have.
std::vector<HttpRoute> Daemon::MetricsRoutes() {
  std::vector<HttpRoute> routes = rest_->Routes();
  std::erase_if(routes, [](const HttpRoute& route) { return !absl::StartsWith(route.path, "/v2/health/"); });
  const auto metrics = [this](const HttpRequest& request) {
    const ExpositionFormat format = AcceptedFormat(request.Header("Accept"));
    return HttpResponse{.content_type = std::string(ContentTypeOf(format)),
                        .body = metrics_->Exposition(format)};
  };
  routes.push_back({.method = "GET", .path = "/metrics", .handler = Responding(metrics), .may_block = true});
  return routes;
}

absl::Status Daemon::OpenPorts() {
  Front::Services services = {
      .methods = vision_->Methods(), .routes = HttpRoutes(), .metrics_routes = MetricsRoutes()};
  for (CallMethod& method : inference_service_->Methods()) services.methods.push_back(std::move(method));
  services.routes.push_back(OpenApiRoute(services.routes, services.metrics_routes, SACCADE_VERSION));
  return front_->Open(std::move(services));
}

void Daemon::StartLoading() {
  // Called on the catalog's thread only.
  const auto publish = [this] {
    if (loaded_) readiness_.ModelsReady(!flags_.strict_readiness || catalog_->CheckAllReady().ok());
  };
  load_started_ = Clock::Real()->Now();
  catalog_->Start({.model_changed = [this](const std::string& model,
                                           bool ready) { readiness_.ModelChanged(model, ready); },
                   .all_ready_changed = publish,
                   .loaded =
                       [this, publish](const absl::Status& first_failure) {
                         if (!first_failure.ok() && flags_.exit_on_error) {
                           loading_failed_ = true;
                           return;
                         }
                         loaded_ = true;
                         publish();
                       }});
}

absl::Status Daemon::Run() {
  if (absl::Status end = AwaitEnd(); !end.ok()) return EndWithoutDrain(std::move(end));
  // A drain that has begun by itself is told to hurry by a second signal, too.
  bool is_asked_to_end = failure_.ok();
  const auto await_second_signal = [&is_asked_to_end](absl::Duration time) {
    return AwaitSignal(time) && std::exchange(is_asked_to_end, true);
  };
  absl::Status drained = Drain({.lame_duck = flags_.lame_duck, .timeout = flags_.drain_timeout},
                               HooksOfDrain(), *Clock::Real(), await_second_signal);
  if (const std::string lost = catalog_->LostModel(); !lost.empty() && !absl::IsInternal(failure_)) {
    failure_ = absl::InternalError(absl::StrCat("the GPU of model '", lost, "' has failed during the drain"));
  }
  // If it timed out, the process exits without further cleanup.
  const bool is_late = absl::IsDeadlineExceeded(drained);
  if (is_late) KeepWhatIsQueued();
  if (failure_.ok()) return drained;
  if (!drained.ok()) Log(LogLevel::kError, "the drain failed, too", {{"reason", drained.message()}});
  // With INTERNAL the exit does not free the memory of a lost GPU.
  if (!is_late || absl::IsInternal(failure_)) return failure_;
  return drained;
}

absl::Status Daemon::EndWithoutDrain(absl::Status failure) {
  // A model that did load may have a pass that hangs.
  const absl::Duration max = std::max(flags_.drain_timeout, DrainOptions().closing);
  if (CloseWithin(max, [this] { Stop(); }, *Clock::Real(), AwaitSignal)) return failure;
  KeepWhatIsQueued();
  return absl::DeadlineExceededError(
      absl::StrCat(failure.message(),
                   "; moreover, the models and ports could not be closed within --drain-timeout-seconds"));
}

void Daemon::KeepWhatIsQueued() {
  // At the same time. Without a thread for it, wait() flushes.
  const auto flushed = std::async([this] { observability_->Flush(kFlushTimeout); });
  // A disk may hang. Half of the time each for files and for the sink.
  const auto stop_capture = [this] { capturing_->Stop(kFlushTimeout / 2); };
  if (!CloseWithin(kFlushTimeout, stop_capture, *Clock::Real(), AwaitSignal)) {
    Log(LogLevel::kWarning, "captured calls were dropped",
        {{"why", "the daemon ends, and they could not be written or sent in time"}});
  }
  flushed.wait();
}

DrainHooks Daemon::HooksOfDrain() {
  DrainHooks hooks;
  hooks.report_not_ready = [this] { readiness_.StartDraining(); };
  hooks.refuse_loads = [this] { catalog_->RefuseLoads(); };
  hooks.go_away = [this] { front_->GoAway(DrainOptions().go_away - DrainOptions().go_away_margin); };
  hooks.refuse_requests = [this] {
    admission_->StartDraining();
    vision_->EndUploads();
  };
  hooks.sweep = [this] { Sweep(); };
  hooks.end_unfinished = [this] { front_->EndUnfinished(); };
  hooks.close = [this] { Stop(); };
  hooks.count = [this, cut_before = front_->cut_requests()](DrainFacts& facts) {
    facts.accepted = admission_->inflight().requests;
    // In this order: a request is counted as cut before it is open no more.
    facts.open_requests = front_->open_requests();
    facts.cut_requests = front_->cut_requests() - cut_before;
  };
  return hooks;
}

void Daemon::UpdateLiveness() {
  const bool live = catalog_->BusyFor() < flags_.stall_after;
  if (!readiness_.SetLive(live)) return;
  if (live) {
    Log(LogLevel::kWarning, "the long forward pass has ended; liveness is SERVING");
  } else {
    Log(LogLevel::kError, "a forward pass exceeds --stall-seconds; liveness is NOT_SERVING");
  }
}

absl::Status Daemon::EndWith(absl::Status failure) {
  failure_ = std::move(failure);
  Log(LogLevel::kError, "the daemon drains and ends", {{"reason", failure_.message()}});
  return absl::OkStatus();
}

void Daemon::CheckLoadDeadline() {
  if (flags_.load_deadline == absl::ZeroDuration() || load_deadline_passed_) return;
  if (Clock::Real()->Now() < load_started_ + flags_.load_deadline) return;
  // The daemon ends once all loads were tried, so load balancers must not send it requests.
  if (flags_.exit_on_error && catalog_->HasFailedAtStart()) return;
  load_deadline_passed_ = true;
  if (!readiness_.StopWaiting()) return;
  std::vector<std::string> missing = catalog_->Missing();
  const auto count = static_cast<int64_t>(missing.size());
  missing.resize(std::min(missing.size(), kMaxNamedModels));
  Log(LogLevel::kWarning,
      "loading takes longer than --load-deadline-seconds; the daemon is ready once one model is loaded",
      {{"missing", count}, {"models", absl::StrJoin(missing, ", ")}});
}

absl::Status Daemon::AwaitEnd() {
  while (!AwaitSignal(kTick)) {
    if (const std::string lost = catalog_->LostModel(); !lost.empty()) {
      // Only a new process can use that GPU again. Models on the CPU and on other GPUs finish their requests
      // first.
      return EndWith(absl::InternalError(
          absl::StrCat("the GPU of model '", lost,
                       "' has failed and cannot be used by this process any more; the process exits and must "
                       "be restarted (see the log for the CUDA error)")));
    }
    if (loading_failed_) {
      const absl::Status failed = absl::FailedPreconditionError(
          "a model could not be loaded (see above); fix it, or pass --exit-on-error=false to serve the "
          "others");
      if (!readiness_.ready()) return failed;
      // It became ready with other models, whose requests are finished first.
      return EndWith(failed);
    }
    CheckLoadDeadline();
    UpdateLiveness();
    CountDemand();
    metrics_->SampleLoad(Clock::Real()->Now());
    LogDroppedLines();
    Sweep();
  }
  return absl::OkStatus();
}

// Pictures are decoded on the cores that compute forward passes, too.
void Daemon::CountDemand() {
  catalog_->CountDemand();
  metrics_->AddDemand(decode_pool_->TakeDemand() / cores_, absl::ZeroDuration());
}

void Daemon::Sweep() {
  catalog_->Sweep();
  inference_->Sweep();
  vision_->Sweep();
  Clock::WakeOverdue();
  ReloadChangedSecrets();
}

void Daemon::Stop() {
  // Stops the sources of calls first, then what answers them, then what counts them.
  if (admission_ != nullptr) admission_->StartDraining();
  if (front_ != nullptr) front_->ClosePorts();
  const bool all_answered =
      admission_ != nullptr && admission_->AwaitIdle(Clock::Real()->Now() + kCancelTimeout);
  // Instances schedule encodes on the pool, so they end first. Closed models reject what the pool still
  // decodes.
  if (catalog_ != nullptr) catalog_->Close();
  decode_pool_.reset();
  if (capturing_ != nullptr) capturing_->Stop(kFlushTimeout);
  if (observability_ != nullptr) observability_->Flush(kFlushTimeout);
  if (metrics_ != nullptr) metrics_->SetScrapeHook(nullptr);
  if (front_ != nullptr) front_->Stop();
  if (all_answered) CheckNothingIsHeld();
}

// Everything that held a part of the bounds was stopped, so what is held now would have been held for ever.
void Daemon::CheckNothingIsHeld() const {
  const Inflight left = admission_->inflight();
  if (left.requests == 0 && left.bytes == 0 && left.decoded_bytes == 0) return;
  Log(LogLevel::kError, "a defect of the daemon: not all that requests held was given back",
      {{"requests", left.requests}, {"bytes", left.bytes}, {"decoded_bytes", left.decoded_bytes}});
}

}  // namespace saccade::server
