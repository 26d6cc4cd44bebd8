#include "server/grpc/health.h"

#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.pb.h"
#include "server/grpc/serialize_message.h"
#include "server/grpc/small_messages.h"
#include "server/grpc/unary.h"

namespace saccade::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

// A longer name is no service's; a watch would have to keep it.
constexpr size_t kMaxServiceName = 1024;

absl::Status CheckRequest(const BytePieces& bytes, HealthCheckRequest& request) {
  if (!ParseSmallMessage(bytes, request)) {
    return absl::InvalidArgumentError("the request is no grpc.health.v1.HealthCheckRequest");
  }
  if (request.service().size() > kMaxServiceName) {
    return absl::InvalidArgumentError(absl::StrCat("the service's name has ", request.service().size(),
                                                   " bytes, expected at most ", kMaxServiceName));
  }
  return absl::OkStatus();
}

BytePieces ResponseOf(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return SerializeMessage(response);
}

HealthCheckResponse::ServingStatus StatusOf(bool serving) {
  return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

}  // namespace

class Health::Impl : public std::enable_shared_from_this<Health::Impl> {
 public:
  class Watch;

  void Set(absl::string_view service, bool serving) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(absl::string_view service) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndWatches() ABSL_LOCKS_EXCLUDED(mutex_);

  void Check(UnaryCall& call, const BytePieces& bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void List(UnaryCall& call, const BytePieces& bytes) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  HealthCheckResponse::ServingStatus StatusOfWatched(const std::string& service) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = services_.find(service);
    return found == services_.end() ? HealthCheckResponse::SERVICE_UNKNOWN : StatusOf(found->second);
  }
  void TellWatches(const std::string& service) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Also guards the watches. Functions of calls are called under it: they return without calling back.
  absl::Mutex mutex_;
  std::map<std::string, bool> services_ ABSL_GUARDED_BY(mutex_);
  // The open ones, by their service.
  std::map<std::string, std::set<Watch*>> watches_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// One call of Watch. Its members are guarded by the Impl's mutex.
class Health::Impl::Watch final : public CallHandler {
 public:
  explicit Watch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  void OnStart(Call* call) override {
    call_ = call;
    call_->Read();
  }
  void OnMessage(BytePieces message) override;
  void OnHalfClose() override;
  void OnSent(bool ok) override;
  void OnCancel() override;
  void OnDone() override {}

  // Tells the thread safety analysis that the caller, who has it as its own, holds the Impl's mutex.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(impl_->mutex_) { impl_->mutex_.AssertHeld(); }
  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex_);
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex_);

 private:
  const std::shared_ptr<Impl> impl_;
  Call* call_ = nullptr;
  bool watching_ = false;
  bool finished_ = false;
  std::string service_;
  bool sending_ = false;
  // The last one that was sent; -1: none.
  int sent_ = -1;
};

void Health::Impl::Watch::OnMessage(BytePieces message) {
  HealthCheckRequest request;
  const absl::Status checked = CheckRequest(message, request);
  absl::MutexLock lock(&impl_->mutex_);
  if (finished_) return;
  if (!checked.ok()) return End(checked);
  if (impl_->ended_) return End(absl::UnavailableError("the server is shutting down"));
  service_ = request.service();
  auto& watches = impl_->watches_[service_];
  try {
    watches.insert(this);
  } catch (...) {
    // An empty set of watches would be taken for one that has some.
    if (watches.empty()) impl_->watches_.erase(service_);
    throw;
  }
  watching_ = true;
  Update();
}

void Health::Impl::Watch::OnHalfClose() {
  absl::MutexLock lock(&impl_->mutex_);
  if (!finished_ && !watching_) {
    End(absl::InvalidArgumentError("the call brought no grpc.health.v1.HealthCheckRequest"));
  }
}

void Health::Impl::Watch::OnSent(bool ok) {
  absl::MutexLock lock(&impl_->mutex_);
  sending_ = false;
  if (ok) Update();
}

void Health::Impl::Watch::OnCancel() {
  absl::MutexLock lock(&impl_->mutex_);
  if (!finished_) End(absl::CancelledError("the client has ended the watch"));
}

void Health::Impl::Watch::Update() {
  if (finished_ || sending_) return;
  const HealthCheckResponse::ServingStatus status = impl_->StatusOfWatched(service_);
  if (status == sent_) return;
  sent_ = status;
  sending_ = true;
  call_->Send(ResponseOf(status));
}

void Health::Impl::Watch::End(absl::Status status) {
  finished_ = true;
  if (watching_) {
    const auto watches = impl_->watches_.find(service_);
    watches->second.erase(this);
    if (watches->second.empty()) impl_->watches_.erase(watches);
  }
  call_->Finish({std::move(status)});
}

void Health::Impl::TellWatches(const std::string& service) {
  const auto watches = watches_.find(service);
  if (watches == watches_.end()) return;
  for (Watch* watch : watches->second) {
    watch->AssertHeld();
    watch->Update();
  }
}

void Health::Impl::Set(absl::string_view service, bool serving) {
  const std::string name(service);
  absl::MutexLock lock(&mutex_);
  services_[name] = serving;
  TellWatches(name);
}

void Health::Impl::Remove(absl::string_view service) {
  const std::string name(service);
  absl::MutexLock lock(&mutex_);
  services_.erase(name);
  TellWatches(name);
}

void Health::Impl::EndWatches() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  while (!watches_.empty()) {
    Watch* const watch = *watches_.begin()->second.begin();
    watch->AssertHeld();
    watch->End(absl::UnavailableError("the server is shutting down"));
  }
}

void Health::Impl::Check(UnaryCall& call, const BytePieces& bytes) {
  HealthCheckRequest request;
  if (absl::Status checked = CheckRequest(bytes, request); !checked.ok())
    return call.Fail({std::move(checked)});
  absl::MutexLock lock(&mutex_);
  const auto found = services_.find(request.service());
  if (found == services_.end()) {
    return call.Fail({absl::NotFoundError(absl::StrCat(
        "unknown service '", request.service(), "'; grpc.health.v1.Health/List names the known ones"))});
  }
  call.Respond(ResponseOf(StatusOf(found->second)));
}

void Health::Impl::List(UnaryCall& call, const BytePieces& bytes) {
  HealthListRequest request;
  if (!ParseSmallMessage(bytes, request)) {
    return call.Fail({absl::InvalidArgumentError("the request is no grpc.health.v1.HealthListRequest")});
  }
  HealthListResponse response;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [service, serving] : services_) {
      (*response.mutable_statuses())[service].set_status(StatusOf(serving));
    }
  }
  call.Respond(SerializeMessage(response));
}

Health::Health() : impl_(std::make_shared<Impl>()) {}
Health::~Health() = default;

void Health::Set(absl::string_view service, bool serving) { impl_->Set(service, serving); }
void Health::Remove(absl::string_view service) { impl_->Remove(service); }
void Health::EndWatches() { impl_->EndWatches(); }

std::vector<CallMethod> Health::Methods() {
  std::vector<CallMethod> methods;
  methods.push_back(UnaryMethod("/grpc.health.v1.Health/Check", "grpc.health.v1.HealthCheckRequest",
                                [impl = impl_](const std::shared_ptr<UnaryCall>& call,
                                               const BytePieces& bytes) { impl->Check(*call, bytes); }));
  methods.push_back(UnaryMethod("/grpc.health.v1.Health/List", "grpc.health.v1.HealthListRequest",
                                [impl = impl_](const std::shared_ptr<UnaryCall>& call,
                                               const BytePieces& bytes) { impl->List(*call, bytes); }));
  methods.push_back({.path = "/grpc.health.v1.Health/Watch",
                     .make = [impl = impl_] { return std::make_shared<Impl::Watch>(impl); }});
  // Charged with the head, so that a call is accepted or refused at once.
  for (CallMethod& method : methods) method.max_message_bytes = kMaxSmallMessage;
  return methods;
}

}  // namespace saccade::server
