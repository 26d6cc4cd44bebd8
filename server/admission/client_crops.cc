#include "server/admission/client_crops.h"

#include <algorithm>
#include <string>

namespace saccade::server {

ClientCrops::Share::Share(ClientCrops* all, absl::string_view client)
    : all_(all), client_(all->Open(client)) {}

ClientCrops::Share::~Share() { all_->Close(client_, crops_); }

bool ClientCrops::Share::HasRoom() const {
  const absl::MutexLock lock(&all_->mutex_);
  return ClientCrops::HasRoom(client_->second, crops_);
}

bool ClientCrops::Share::Start() {
  const absl::MutexLock lock(&all_->mutex_);
  if (!ClientCrops::HasRoom(client_->second, crops_)) return false;
  ++crops_;
  ++client_->second.crops;
  return true;
}

void ClientCrops::Share::End() {
  const absl::MutexLock lock(&all_->mutex_);
  --crops_;
  --client_->second.crops;
}

ClientCrops::Clients::iterator ClientCrops::Open(absl::string_view client) {
  const absl::MutexLock lock(&mutex_);
  const auto found = clients_.try_emplace(std::string(client)).first;
  ++found->second.requests;
  return found;
}

void ClientCrops::Close(Clients::iterator client, int crops) {
  const absl::MutexLock lock(&mutex_);
  client->second.crops -= crops;
  if (--client->second.requests == 0) clients_.erase(client);
}

bool ClientCrops::HasRoom(const Client& client, int crops) {
  if (crops == 0) return true;
  return crops < std::max(1, kMaxCropsAtOnce / client.requests) && client.crops < kMaxCropsAtOnce;
}

}  // namespace saccade::server
