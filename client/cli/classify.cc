#include "client/cli/classify.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/connect.h"
#include "client/cli/failure.h"
#include "client/cli/outcome.h"
#include "client/cli/overlay.h"
#include "client/cli/overlay_path.h"
#include "client/cli/picture_file.h"

namespace saccade::client {
namespace {

// Sends the pictures from a few threads and hands the outcomes over in order.
class Batch {
 public:
  Batch(const ClassifyCommand& command, Console& console, Client& client)
      : command_(command),
        console_(console),
        client_(client),
        outcomes_(command.pictures.size()),
        done_(command.pictures.size(), false) {
    if (!command.output.empty()) overlays_ = OverlayPaths(command.output, command.pictures);
    const size_t threads = std::min<size_t>(command.concurrency, command.pictures.size());
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  // Pictures not yet begun are left; those under way are waited for.
  ~Batch() {
    {
      absl::MutexLock lock(&mutex_);
      next_ = done_.size();
    }
    for (std::thread& thread : threads_) thread.join();
  }

  // Blocks until the picture's outcome is there.
  Outcome Take(size_t index) {
    absl::MutexLock lock(&mutex_);
    const std::pair<Batch*, size_t> wanted(this, index);
    mutex_.Await(absl::Condition(
        +[](const std::pair<Batch*, size_t>* about)
             ABSL_NO_THREAD_SAFETY_ANALYSIS -> bool { return about->first->done_[about->second]; },
        &wanted));
    return std::move(outcomes_[index]);
  }

 private:
  void Work() {
    while (true) {
      size_t index = 0;
      {
        absl::MutexLock lock(&mutex_);
        if (next_ >= done_.size()) return;
        index = next_++;
      }
      Outcome outcome = Ask(index);
      absl::MutexLock lock(&mutex_);
      outcomes_[index] = std::move(outcome);
      done_[index] = true;
    }
  }

  Outcome Ask(size_t index) {
    Outcome outcome;
    outcome.file = command_.pictures[index];
    const auto picture = ReadPicture(outcome.file, console_.in, command_.connection.max_message_bytes);
    if (!picture.ok()) {
      outcome.answer = picture.status();
      outcome.unreadable = true;
      return outcome;
    }
    ClassifyOptions options;
    options.version = command_.version;
    options.top_k = command_.top_k;
    options.priority = command_.priority;
    outcome.answer = client_.Classify(command_.model, *picture, options);
    if (outcome.answer.ok() && !overlays_.empty()) {
      outcome.overlay_status = WriteOverlay(*picture, *outcome.answer, overlays_[index]);
      if (outcome.overlay_status.ok()) outcome.overlay = overlays_[index];
    }
    return outcome;
  }

  const ClassifyCommand& command_;
  Console& console_;
  Client& client_;
  std::vector<std::string> overlays_;
  absl::Mutex mutex_;
  std::vector<Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> done_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

// What goes to err about one picture. The same advice is not given twice in a row.
void Tell(const ClassifyCommand& command, Console& console, const Outcome& outcome,
          std::string& last_advice) {
  const std::string name = outcome.file == "-" ? "standard input" : outcome.file;
  if (!outcome.answer.ok()) {
    const absl::Status& status = outcome.answer.status();
    const Explanation explanation = outcome.unreadable ? Explanation{std::string(status.message()), ""}
                                                       : Explain(status, command.connection.url);
    const bool advise = !explanation.advice.empty() && explanation.advice != last_advice;
    last_advice = explanation.advice;
    Complain(console, absl::StrCat(name, outcome.unreadable ? " " : ": ", explanation.what,
                                   advise ? ": " : "", advise ? explanation.advice : ""));
  } else if (!outcome.overlay_status.ok()) {
    Complain(console, absl::StrCat(name, ": no overlay: ", outcome.overlay_status.message()));
  } else if (!outcome.overlay.empty() && !command.quiet) {
    console.err << "wrote " << Printable(outcome.overlay) << std::endl;
  }
}

void ShowProgress(const ClassifyCommand& command, Console& console, size_t done) {
  if (!console.progress || command.quiet || command.pictures.size() < 2) return;
  console.err << '\r' << done << " of " << command.pictures.size() << " pictures"
              << (done == command.pictures.size() ? "\n" : "") << std::flush;
}

bool MakeOutputDirectory(const ClassifyCommand& command, Console& console) {
  if (command.output.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(command.output, error);
  if (!error) return true;
  Complain(console, absl::StrCat("--output ", command.output, ": ", error.message(), "; expected a folder"));
  return false;
}

}  // namespace

int RunClassify(const ClassifyCommand& command, Console& console) {
  if (std::count(command.pictures.begin(), command.pictures.end(), "-") > 1) {
    Complain(console, "'-' stands for standard input, which holds one picture; it was given twice");
    return kExitUsage;
  }
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  if (!MakeOutputDirectory(command, console)) return kExitFailure;

  Batch batch(command, console, *client);
  int exit_code = kExitOk;
  std::string last_advice;
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < command.pictures.size(); ++i) {
    Outcome outcome = batch.Take(i);
    if (exit_code == kExitOk) exit_code = outcome.ExitCode();
    Tell(command, console, outcome, last_advice);
    if (command.format == Format::kJson) {
      ShowProgress(command, console, i + 1);
      outcomes.push_back(std::move(outcome));
    } else if (outcome.answer.ok()) {
      PrintText(console, outcome);
      if (!Flush(console)) return kExitFailure;
    }
  }
  if (command.format == Format::kText) return exit_code;
  console.out << ToJson(command.model, outcomes);
  return Flush(console) ? exit_code : kExitFailure;
}

}  // namespace saccade::client
