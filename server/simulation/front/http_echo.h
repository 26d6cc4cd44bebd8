// The HTTP routes of the simulated world.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http_message.h"
#include "server/net/loop.h"
#include "server/simulation/random.h"

namespace saccade::server::simulation {

// Answers POST /echo with the body, and GET /sized/BYTES with as many bytes. A tenth of the requests fails.
class HttpEcho {
 public:
  // What a test breaks.
  enum class Fault {
    kNone,
    kKeepsBodies,   // no request's body is freed
    kMixesAnswers,  // an echo is that of the request before it
  };
  // `later` runs a task after a while, outside of the front's callbacks.
  HttpEcho(Fault fault, Random* random, std::function<void(Loop::Task)> later)
      : fault_(fault), random_(*random), later_(std::move(later)) {}

  // They refer to this object.
  std::vector<HttpRoute> Routes();

  // How many requests of the client have failed.
  int failed(const std::string& client) { return failed_[client]; }
  // Frees what Fault::kKeepsBodies has kept.
  void Clear() { kept_.clear(); }

 private:
  using Request = std::shared_ptr<const HttpRequest>;

  void Handle(HttpResponse (HttpEcho::*respond)(const Request&), const Request& request,
              const HttpReply& reply);
  HttpResponse Echo(const Request& request);
  HttpResponse Sized(const Request& request);

  const Fault fault_;
  Random& random_;
  const std::function<void(Loop::Task)> later_;
  std::map<std::string, int> failed_;
  std::vector<Request> kept_;
  // The body of the last echo.
  std::string last_;
};

}  // namespace saccade::server::simulation
