#include "client/cli/commands/batch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/input/input_file.h"
#include "client/cli/output/output_file.h"
#include "client/cpp/retry.h"

namespace saccade::client {
namespace {

std::vector<std::string> FirstOfEach(const std::vector<Item>& items) {
  std::vector<std::string> firsts;
  for (const Item& item : items) firsts.push_back(item.names.front());
  return firsts;
}

// Draws the attention maps over the picture, or the left one of a pair; on their own if the input is a video.
absl::Status WriteAttention(const std::string& picture, const std::optional<Region>& region, Outcome& outcome,
                            const std::string& stem) {
  const auto& answer = std::visit([](const auto& any) -> const Answer& { return any; }, *outcome.answer);
  if (!answer.explanation) return absl::OkStatus();
  const std::string path = absl::StrCat(stem, ".attention.png");
  const absl::Status status = DrawAttention(picture, region, answer, path);
  if (status.ok()) outcome.written.push_back({"attention_map", path});
  return status;
}

// Writes the answer with its signed statement, if it has one.
absl::Status WriteAttested(Outcome& outcome, const std::string& stem) {
  const auto& answer = std::visit([](const auto& any) -> const Answer& { return any; }, *outcome.answer);
  if (answer.attested.empty()) return absl::OkStatus();
  return WriteAs("attested", absl::StrCat(stem, ".attested"), answer.attested, outcome.written);
}

}  // namespace

Batch::Batch(const PicturesCommand& command, const std::vector<Item>& items, const Task& task, Client& client,
             std::istream& in)
    : command_(command),
      task_(task),
      client_(client),
      in_(in),
      items_(items),
      outcomes_(items_.size()),
      done_(items_.size(), false) {
  if (!command.output.empty()) stems_ = OutputStems(command.output, FirstOfEach(items_));
  const size_t threads = std::min<size_t>(command.concurrency, items_.size());
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Batch::~Batch() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

Outcome Batch::Take(size_t index) {
  absl::MutexLock lock(&mutex_);
  const std::pair<Batch*, size_t> wanted(this, index);
  mutex_.Await(absl::Condition(
      +[](const std::pair<Batch*, size_t>* about)
           ABSL_NO_THREAD_SAFETY_ANALYSIS -> bool { return about->first->done_[about->second]; },
      &wanted));
  return std::move(outcomes_[index]);
}

void Batch::Work() {
  while (true) {
    size_t index = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_ || next_ >= done_.size()) return;
      index = next_++;
    }
    Outcome outcome = Ask(index);
    absl::MutexLock lock(&mutex_);
    outcomes_[index] = std::move(outcome);
    done_[index] = true;
  }
}

bool Batch::Sleep(absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&stopped_), delay);
}

Outcome Batch::Ask(size_t index) {
  Outcome outcome;
  outcome.files = items_[index].names;
  Pictures pictures;
  for (const std::string& file : items_[index].files) {
    auto picture = ReadInput(file, in_, command_.connection.max_message_bytes, task_.expected);
    if (!picture.ok()) {
      outcome.answer = picture.status();
      outcome.unreadable = file;
      return outcome;
    }
    pictures.push_back(*std::move(picture));
  }
  outcome.answer = task_.ask(client_, pictures);
  for (int repeated = 0; !outcome.answer.ok() && repeated < command_.retries; ++repeated) {
    const auto delay = RetryDelay(outcome.answer.status(), repeated);
    if (!delay || !Sleep(*delay)) break;
    outcome.answer = task_.ask(client_, pictures);
  }
  if (outcome.answer.ok() && !stems_.empty()) {
    outcome.write_status = task_.write(pictures, *outcome.answer, stems_[index], outcome.written);
    if (outcome.write_status.ok())
      outcome.write_status = WriteAttention(pictures[0], ParseRegion(command_.region), outcome,
                                            absl::StrCat(stems_[index], ".", task_.name));
    if (outcome.write_status.ok())
      outcome.write_status = WriteAttested(outcome, absl::StrCat(stems_[index], ".", task_.name));
  }
  return outcome;
}

}  // namespace saccade::client
