// Bounds the crops in flight of each client. Crops are nested requests, which no other bound of a client
// counts.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {

// The maximum number of crops in flight of all requests of a client, but each may have one.
inline constexpr int kMaxCropsAtOnce = 32;

// Thread-safe.
class ClientCrops {
  struct Client {
    // Requests with crops.
    int requests = 0;
    // Crops in flight of all of them.
    int crops = 0;
  };
  using Clients = std::map<std::string, Client, std::less<>>;

 public:
  // What a request with crops may have in flight. Not thread-safe. `all` must outlive it.
  class Share {
   public:
    Share(ClientCrops* all, absl::string_view client);
    // Returns crops that were not ended, as after an allocation that failed.
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Whether Start() would return true: if no crop of the request is in flight, or if it has fewer than an
    // equal part of kMaxCropsAtOnce and its client fewer than all.
    bool HasRoom() const;
    // Counts a crop, unless there is no room. The request has to try again when one of its own crops ends.
    bool Start();
    void End();

   private:
    ClientCrops* const all_;
    const Clients::iterator client_;
    // Crops in flight.
    int crops_ = 0;
  };

  ClientCrops() = default;
  ClientCrops(const ClientCrops&) = delete;
  ClientCrops& operator=(const ClientCrops&) = delete;

 private:
  Clients::iterator Open(absl::string_view client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(Clients::iterator client, int crops) ABSL_LOCKS_EXCLUDED(mutex_);
  static bool HasRoom(const Client& client, int crops);

  absl::Mutex mutex_;
  // Clients that have such requests.
  Clients clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
