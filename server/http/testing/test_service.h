// Routes behind sessions without sockets, for tests: virtual time, and a work pool that tests can wait for.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/core/byte_ledger.h"
#include "server/http/http_limits.h"
#include "server/http/http_service.h"
#include "server/http/http_session.h"
#include "server/http/testing/refusal_counts.h"
#include "server/net/testing/manual_loop.h"
#include "server/net/testing/session_pipe.h"
#include "server/net/work_pool.h"

namespace saccade::server {

// Charges up to a bound. Thread-safe.
class BoundedLedger final : public ByteLedger {
 public:
  explicit BoundedLedger(int64_t max) : max_(max) {}

  absl::StatusOr<ByteCharge> Charge(absl::string_view client, int64_t bytes) override {
    absl::MutexLock lock(&mutex_);
    clients_.emplace_back(client);
    if (charged_ + bytes > max_) return absl::ResourceExhaustedError("no bytes are left");
    charged_ += bytes;
    max_charged_ = std::max(max_charged_, charged_);
    return Issue(this, client, bytes);
  }

  int64_t charged() {
    absl::MutexLock lock(&mutex_);
    return charged_;
  }
  int64_t max_charged() {
    absl::MutexLock lock(&mutex_);
    return max_charged_;
  }
  // The client that each call of Charge() named.
  std::vector<std::string> clients() {
    absl::MutexLock lock(&mutex_);
    return clients_;
  }

 private:
  void Return(absl::string_view /*client*/, int64_t bytes) override {
    absl::MutexLock lock(&mutex_);
    charged_ -= bytes;
  }

  const int64_t max_;
  absl::Mutex mutex_;
  int64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t max_charged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> clients_ ABSL_GUARDED_BY(mutex_);
};

// Change options and limits before the first connection.
class TestService {
 public:
  explicit TestService(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {
    options.pool = &pool;
    options.short_pool = &short_pool;
    options.refusals = &refusals;
  }

  // A new connection.
  std::unique_ptr<SessionPipe> Connect(Peer peer = {"127.0.0.1", true, false}) {
    if (service_ == nullptr) {
      auto service = HttpService::Create(options, routes_);
      EXPECT_TRUE(service.ok()) << service.status();
      service_ = *std::move(service);
    }
    auto pipe = std::make_unique<SessionPipe>(&loop, std::move(peer));
    pipe->Open(MakeHttpSession(pipe.get(), service_.get(), &limits, &refusals));
    return pipe;
  }

  // Runs what was submitted to the pools, and what follows from that on the loop.
  void FinishWork() {
    // In this order, because tasks of the first submit tasks to the second.
    FinishWork(short_pool);
    FinishWork(pool);
  }
  // The same for one of the pools.
  void FinishWork(WorkPool& one) {
    absl::Notification done;
    // As the client of Connect(): the tasks of another would not wait for all of its own.
    ASSERT_TRUE(one.Submit("ipv4:127.0.0.1", [&done] { done.Notify(); }));
    done.WaitForNotification();
    loop.RunUntilIdle();
  }

  // What the server sends in response to `request` on a new connection.
  std::string Ask(const std::string& request) { return Ask(*Connect(), request); }
  std::string Ask(SessionPipe& connection, const std::string& request) {
    connection.Send(request);
    FinishWork();
    return connection.TakeOutput();
  }

  ManualLoop loop;
  HttpLimits limits;
  HttpService::Options options;
  RefusalCounts refusals;
  // Both have one thread, so that tasks run in order.
  WorkPool pool{1, 16};
  WorkPool short_pool{1, 16};

 private:
  std::vector<HttpRoute> routes_;
  std::unique_ptr<HttpService> service_;
};

inline std::string Get(const std::string& path, const std::string& headers = "") {
  return absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\n", headers, "\r\n");
}

inline std::string Post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: test\r\n", headers, "Content-Length: ", body.size(),
                      "\r\n\r\n", body);
}

// A handler that responds with text.
inline HttpHandler Text(std::function<std::string(const HttpRequest&)> handle) {
  return Responding([handle = std::move(handle)](const HttpRequest& request) {
    return HttpResponse{200, "text/plain", handle(request)};
  });
}

}  // namespace saccade::server
