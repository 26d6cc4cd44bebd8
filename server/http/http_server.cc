#include "server/http/http_server.h"

#include <cerrno>
#include <list>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/http/connection.h"
#include "server/http/listener.h"
#include "server/http/protocol.h"

namespace saccade::server {

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, Listener listener, std::unique_ptr<Protocol> protocol)
      : options_(std::move(options)),
        listener_(std::move(listener)),
        protocol_(std::move(protocol)),
        accepting_([this] { AcceptAll(); }) {}

  int port() const { return listener_.port(); }

  void Stop();

 private:
  // One connection and what its thread is at.
  struct Client {
    Client(int fd, const HttpServerOptions& options) : connection(fd, options) {}
    Connection connection;
    // Between two requests.
    bool idle = true;
    absl::Time idle_since = absl::Now();
    // Told to go, to make room.
    bool evicted = false;
  };
  using Clients = std::list<Client>;

  void AcceptAll();
  void Admit(int fd);
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(Clients::iterator client);
  void ServeRequests(Client& client);
  bool ServeOne(Client& client, bool last);
  bool SetIdle(Client& client, bool idle);

  const HttpServerOptions options_;
  Listener listener_;
  const std::unique_ptr<Protocol> protocol_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The threads of those in it are detached; Stop waits until it is empty.
  Clients clients_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex stop_mutex_;
  // Last: it uses everything above.
  std::thread accepting_ ABSL_GUARDED_BY(stop_mutex_);
};

void HttpServer::Impl::AcceptAll() {
  for (;;) {
    const int fd = listener_.Accept();
    if (fd >= 0) {
      Admit(fd);
      continue;
    }
    const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    absl::MutexLock lock(&mutex_);
    // Out of descriptors or memory, which others may give back; every other failure concerns one client
    // alone.
    if (exhausted) mutex_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Milliseconds(100));
    if (stopping_) return;
  }
}

// The client that is idle longest goes; a full house of idle clients must not keep a probe out.
bool HttpServer::Impl::MakeRoom() {
  int staying = 0;
  Client* longest = nullptr;
  for (Client& client : clients_) {
    if (client.evicted) continue;
    ++staying;
    if (client.idle && (longest == nullptr || client.idle_since < longest->idle_since)) longest = &client;
  }
  if (staying < options_.max_connections) return true;
  if (longest == nullptr) return false;
  longest->evicted = true;
  longest->connection.Interrupt();
  return true;
}

void HttpServer::Impl::Admit(int fd) {
  Clients arrived;
  arrived.emplace_back(fd, options_);
  const auto client = arrived.begin();
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_ && MakeRoom()) clients_.splice(clients_.end(), arrived);
  }
  if (!arrived.empty()) {
    // Nothing can be said before TLS is agreed on, for which there is no time here.
    if (options_.tls) return;
    HttpResponse busy =
        HttpError(503, absl::StrCat("all ", options_.max_connections, " connections are busy; try again"));
    busy.headers = {{"Retry-After", "1"}};
    Protocol::Refuse(client->connection, busy);
    return;
  }
  try {
    std::thread([this, client] { Serve(client); }).detach();
  } catch (const std::system_error&) {
    absl::MutexLock lock(&mutex_);
    clients_.erase(client);
  }
}

void HttpServer::Impl::Serve(Clients::iterator client) {
  ServeRequests(*client);
  absl::MutexLock lock(&mutex_);
  clients_.erase(client);
}

void HttpServer::Impl::ServeRequests(Client& client) {
  switch (client.connection.Greet()) {
    case Greeting::kDone:
      break;
    case Greeting::kPlainHttp:
      Protocol::Refuse(client.connection, HttpError(400, "this port speaks TLS; ask https:// of it"));
      client.connection.Linger();
      return;
    case Greeting::kFailed:
      return;
  }
  for (int left = options_.max_requests_per_connection; left > 0; --left) {
    if (!client.connection.AwaitRequest() || !SetIdle(client, false)) return;
    if (!ServeOne(client, left == 1)) break;
    if (!SetIdle(client, true)) return;
  }
  client.connection.Linger();
}

// False if the connection has to end now.
bool HttpServer::Impl::SetIdle(Client& client, bool idle) {
  absl::MutexLock lock(&mutex_);
  client.idle = idle;
  client.idle_since = absl::Now();
  return !stopping_ && !client.evicted;
}

// False if the connection has to end.
bool HttpServer::Impl::ServeOne(Client& client, bool last) {
  switch (client.connection.ReadHead()) {
    case HeadResult::kComplete:
      return protocol_->Answer(client.connection, last);
    case HeadResult::kTooLarge:
      Protocol::Refuse(client.connection, HttpError(431, absl::StrCat("more than ", options_.max_head_bytes,
                                                                      " bytes of headers")));
      return false;
    case HeadResult::kTimedOut:
      Protocol::Refuse(client.connection, HttpError(408, "the request did not come to its end in time"));
      return false;
    case HeadResult::kClosed:
      return false;
  }
  return false;
}

void HttpServer::Impl::Stop() {
  absl::MutexLock stop(&stop_mutex_);
  if (!accepting_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  listener_.Shutdown();
  accepting_.join();
  absl::MutexLock lock(&mutex_);
  for (Client& client : clients_) client.connection.Interrupt();
  mutex_.Await(absl::Condition(+[](Clients* clients) { return clients->empty(); }, &clients_));
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              std::vector<HttpRoute> routes) {
  auto protocol = Protocol::Create(options, std::move(routes));
  if (!protocol.ok()) return protocol.status();
  auto listener = Listener::Open(options.host, options.port, options.port_flag);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(options, *std::move(listener), *std::move(protocol));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { Stop(); }

int HttpServer::port() const { return impl_->port(); }

void HttpServer::Stop() { impl_->Stop(); }

}  // namespace saccade::server
