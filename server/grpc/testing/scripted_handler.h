// A call's handler that writes down what happens to it, and does what the test says.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/grpc/call.h"

namespace saccade::server {

inline std::string TextOf(const BytePieces& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(text.data());
  return text;
}
inline BytePieces OwnedBytes(std::string text) {
  const auto owned = std::make_shared<std::string>(std::move(text));
  return BytePieces(*owned, owned);
}

// What a test looks at after the call's end.
struct CallScript {
  // "start", "message: ...", "half-close", "sent", "not sent", "cancel", "shutdown", "done".
  std::vector<std::string> events;
  // Valid until "done".
  Call* call = nullptr;
  // Called with each event but "done", after it was written down.
  std::function<void(const std::string& event)> then = [](const std::string&) {};
  // Whether the handler finishes the call itself when the server shuts down.
  bool ends_at_shutdown = false;
  bool destroyed = false;
};

class ScriptedHandler final : public CallHandler {
 public:
  explicit ScriptedHandler(CallScript* script) : script_(script) {}
  ~ScriptedHandler() override { script_->destroyed = true; }

  // A method at `path` whose calls follow `script`.
  static CallMethod Method(std::string path, CallScript* script) {
    return {.path = std::move(path), .make = [script] { return std::make_shared<ScriptedHandler>(script); }};
  }

  void OnStart(Call* call) override {
    script_->call = call;
    Note("start");
  }
  void OnMessage(BytePieces message) override { Note("message: " + TextOf(message)); }
  void OnHalfClose() override { Note("half-close"); }
  void OnSent(bool ok) override { Note(ok ? "sent" : "not sent"); }
  void OnCancel() override { Note("cancel"); }
  bool OnShutdown(const CallEnd& /*end*/) override {
    Note("shutdown");
    return script_->ends_at_shutdown;
  }
  void OnDone() override {
    script_->events.push_back("done");
    script_->call = nullptr;
  }

 private:
  void Note(const std::string& event) {
    script_->events.push_back(event);
    script_->then(event);
  }

  CallScript* const script_;
};

}  // namespace saccade::server
