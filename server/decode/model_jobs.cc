#include "server/decode/model_jobs.h"

#include <algorithm>
#include <iterator>

namespace saccade::server {

const ModelJobs::Position& ModelJobs::Client::last() const {
  if (jobs[kShort].empty()) return jobs[kLong].rbegin()->first;
  if (jobs[kLong].empty()) return jobs[kShort].rbegin()->first;
  return std::max(jobs[kShort].rbegin()->first, jobs[kLong].rbegin()->first);
}

ModelJobs::Client& ModelJobs::FindOrAdd(const std::string& name) {
  const auto known = clients_.find(name);
  if (known != clients_.end()) return known->second;
  // The node is made first: without memory for it there is no client.
  Idle listed;
  listed.insert({0.0, nullptr});
  const auto added = clients_.try_emplace(name).first;
  Client& client = added->second;
  client.name = &added->first;
  client.idle = listed.extract(listed.begin());
  return client;
}

void ModelJobs::Insert(const std::string& name, const Position& position, Waiting waiting) {
  const Kind kind = KindOf(waiting.may_be_long);
  // All that needs memory comes first.
  waiting.client = name;
  Jobs job;
  job.emplace(position, std::move(waiting));
  Turns turn;
  turn.emplace();
  const double level = std::max(levels_.try_emplace(position.priority).first->second, level_);
  Client& client = FindOrAdd(name);
  if (client.idle.empty()) client.idle = idle_.extract({client.used, &client});
  if (client.size() == 0) client.used = std::max(client.used, level);
  if (client.jobs[kind].empty()) {
    auto node = turn.extract(turn.begin());
    node.key() = {client.used, position};
    node.mapped() = &client;
    client.turns[kind] = turns_[kind].insert(std::move(node)).position;
  }
  client.jobs[kind].merge(job);
  ++size_;
  List(client, kind);
}

void ModelJobs::List(Client& client, Kind kind) {
  auto node = turns_[kind].extract(client.turns[kind]);
  if (client.jobs[kind].empty()) return;
  node.key() = {client.used, client.jobs[kind].begin()->first};
  client.turns[kind] = turns_[kind].insert(std::move(node)).position;
}

void ModelJobs::Use(Client& client, double seconds) {
  client.used += seconds;
  for (const Kind kind : {kShort, kLong}) {
    if (!client.jobs[kind].empty()) List(client, kind);
  }
}

ModelJobs::Waiting ModelJobs::Erase(Client& client, Kind kind, Jobs::iterator job) {
  Waiting removed = std::move(job->second);
  client.jobs[kind].erase(job);
  --size_;
  List(client, kind);
  return removed;
}

ModelJobs::Taken ModelJobs::Take(bool takes_long, double seconds) {
  Kind kind = kShort;
  if (takes_long && !turns_[kLong].empty() &&
      (turns_[kShort].empty() || turns_[kLong].begin()->first < turns_[kShort].begin()->first)) {
    kind = kLong;
  }
  Client& client = *turns_[kind].begin()->second;
  double& level = levels_.find(turns_[kind].begin()->first.first.priority)->second;
  level = std::max(level, client.used);
  Waiting waiting = Erase(client, kind, client.jobs[kind].begin());
  ++client.running;
  ++running_;
  Use(client, seconds);
  ForgetIdle();
  std::string name = std::move(waiting.client);
  return {.client = std::move(name), .waiting = std::move(waiting)};
}

void ModelJobs::Done(const std::string& name, double seconds) {
  Client& client = clients_.find(name)->second;
  --client.running;
  --running_;
  Use(client, seconds);
  if (client.is_idle()) Rest(client);
}

void ModelJobs::Rest(Client& client) {
  client.idle.value() = {client.used, &client};
  idle_.insert(std::move(client.idle));
  if (idle_.size() > kMaxIdleClients) level_ = std::max(level_, idle_.begin()->first);
  // If no client has jobs, all start equal: the level rises to that of the idle client that used most.
  if (size_ == 0 && running_ == 0) level_ = std::max(level_, idle_.rbegin()->first);
  ForgetIdle();
}

void ModelJobs::ForgetIdle() {
  const auto lowest = std::min_element(levels_.begin(), levels_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const double level = std::max(level_, lowest->second);
  while (!idle_.empty() && idle_.begin()->first <= level) {
    const Client* const client = idle_.begin()->second;
    idle_.erase(idle_.begin());
    clients_.erase(clients_.find(*client->name));
  }
}

std::optional<ModelJobs::Key> ModelJobs::FindLast(const Key* added) const {
  struct Candidate {
    const std::string* client = nullptr;
    size_t jobs = 0;
    Position last;
  };
  Candidate found;
  const auto consider = [&found](const Candidate& other) {
    const auto rank = [](const Candidate& one) {
      return std::tuple(-int64_t{one.last.priority}, one.jobs, one.last.deadline, one.last.pushed);
    };
    if (found.client == nullptr || rank(found) < rank(other)) found = other;
  };
  bool has_jobs = false;
  for (const auto& [name, client] : clients_) {
    if (client.size() == 0) continue;
    if (added == nullptr || name != added->client) {
      consider({&name, client.size(), client.last()});
    } else {
      has_jobs = true;
      consider({&name, client.size() + 1, std::max(client.last(), added->position)});
    }
  }
  if (added != nullptr && !has_jobs) consider({&added->client, 1, added->position});
  if (found.client == nullptr || (added != nullptr && found.last.pushed == added->position.pushed))
    return std::nullopt;
  const Jobs& jobs = clients_.find(*found.client)->second.jobs[kLong];
  return Key{*found.client, jobs.count(found.last) > 0, found.last};
}

const ModelJobs::Waiting& ModelJobs::At(const Key& key) const {
  return clients_.find(key.client)->second.jobs[KindOf(key.may_be_long)].find(key.position)->second;
}

ModelJobs::Waiting ModelJobs::Remove(const Key& key) {
  Client& client = clients_.find(key.client)->second;
  Jobs& jobs = client.jobs[KindOf(key.may_be_long)];
  Waiting removed = Erase(client, KindOf(key.may_be_long), jobs.find(key.position));
  if (client.is_idle()) Rest(client);
  return removed;
}

}  // namespace saccade::server
