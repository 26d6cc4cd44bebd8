#include "server/lifecycle/capture_setup.h"

#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// The pod's namespace, for Kubernetes' downward API to set.
constexpr char kNamespaceVariable[] = "POD_NAMESPACE";

void Count(CaptureMetrics& metrics, CaptureFate fate, int64_t bytes) {
  switch (fate) {
    case CaptureFate::kWritten:
      metrics.AddWritten(bytes);
      return;
    case CaptureFate::kQueueFull:
      metrics.AddDropped(CaptureLoss::kQueueFull);
      return;
    case CaptureFate::kWriteFailed:
      metrics.AddDropped(CaptureLoss::kWriteFailed);
      return;
    case CaptureFate::kTooLarge:
      metrics.AddDropped(CaptureLoss::kTooLarge);
      return;
    case CaptureFate::kTooManyFaults:
      metrics.AddDropped(CaptureLoss::kTooManyFaults);
      return;
  }
}

void Count(CaptureMetrics& metrics, EventFate fate, int64_t events) {
  switch (fate) {
    case EventFate::kSent:
      metrics.AddEventsSent(events);
      return;
    case EventFate::kQueueFull:
      metrics.AddEventsDropped(EventLoss::kQueueFull, events);
      return;
    case EventFate::kFailed:
      metrics.AddEventsDropped(EventLoss::kSendFailed, events);
      return;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CaptureSetup>> CaptureSetup::Create(const Flags& flags, Metrics* metrics,
                                                                   Clock* clock) {
  std::unique_ptr<CaptureSetup> capturing(new CaptureSetup);
  CaptureOptions options = flags.capture;
  if (options.folder.empty() && options.sink.empty()) return capturing;
  options.id = flags.id;
  options.version = SACCADE_VERSION;
  options.choice.enabled = !options.paused;
  if (const char* const name = std::getenv(kNamespaceVariable)) options.kubernetes_namespace = name;
  capturing->metrics_ = metrics->ForCapture();
  if (absl::Status made = capturing->MakeSink(options, clock); !made.ok()) return made;
  if (absl::Status made = capturing->MakeCapture(options, clock); !made.ok()) return made;
  Log(LogLevel::kInfo, "capturing calls",
      {{"folder", options.folder},
       {"sink", options.sink},
       {"rate", absl::StrCat(options.choice.rate)},
       {"pixels", NameOf(options.pixels)},
       {"enabled", options.choice.enabled}});
  return capturing;
}

absl::Status CaptureSetup::MakeSink(const CaptureOptions& options, Clock* clock) {
  if (options.sink.empty()) return absl::OkStatus();
  auto client = EventClient::Create(options.sink, options.version);
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  EventSink::Hooks hooks;
  hooks.send = [this](const CloudEvent& event, const std::function<bool()>& given_up) {
    return client_->Send(event, given_up);
  };
  hooks.count = [this](EventFate fate, int64_t events) { Count(*metrics_, fate, events); };
  hooks.warn = [](const std::string& why) {
    Log(LogLevel::kWarning, "events of captured calls were dropped", {{"why", why}});
  };
  try {
    sink_ = std::make_unique<EventSink>(options, std::move(hooks), clock);
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError("cannot send events of captured calls: no thread is left");
  }
  return absl::OkStatus();
}

absl::Status CaptureSetup::MakeCapture(const CaptureOptions& options, Clock* clock) {
  Capture::Hooks hooks;
  hooks.count = [this](CaptureFate fate, int64_t bytes) { Count(*metrics_, fate, bytes); };
  hooks.warn = [](const std::string& why) {
    Log(LogLevel::kWarning, "captured calls were dropped", {{"why", why}});
  };
  hooks.sink = sink_.get();
  auto capture = Capture::Create(options, std::move(hooks), clock);
  if (!capture.ok()) return capture.status();
  capture_ = *std::move(capture);
  return absl::OkStatus();
}

void CaptureSetup::RefreshGauges() {
  if (capture_ != nullptr) metrics_->SetBytes(capture_->folder_bytes());
}

void CaptureSetup::Stop(absl::Duration max) {
  const absl::MutexLock lock(&stop_mutex_);
  if (capture_ != nullptr) capture_->Stop(max);
  if (sink_ != nullptr) sink_->Stop(max);
}

}  // namespace saccade::server
