// Runs a model on tensors in files, for the parity tests:
//   saccade_run_model ARCHITECTURE WEIGHTS INPUT OUTPUT [--gpu N] [--paste | --quantize] [OPTION=VALUE]...
// It computes on the GPU with that number, or on the CPU.
// INPUT is a batch file (models/tools/batch_file.h). OUTPUT becomes a file of answers (answers_file.h), or
// with --quantize the weights in int8 (quantize_on_batch.h). The model's notes are printed to stderr.
//   saccade_run_model --lines
// runs one model after another: each line of stdin holds the arguments of one, with a tab between them, and
// is answered by a line with its exit code. A process that runs many models loads LibTorch once.
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/api/model.h"
#include "models/api/registry.h"
#include "models/tools/answers_file.h"
#include "models/tools/batch_file.h"
#include "models/tools/option_arguments.h"
#include "models/tools/quantize_on_batch.h"

namespace saccade::models {
namespace {

struct Arguments {
  std::string architecture, weights, input, output;
  bool paste = false;
  bool quantize = false;
  std::optional<int> gpu = std::nullopt;
  Options options = {};
};

Arguments ParseArguments(int argc, char** argv) {
  if (argc < 5) {
    throw std::runtime_error(
        "expected ARCHITECTURE WEIGHTS INPUT OUTPUT [--gpu N] [--paste | --quantize] [OPTION=VALUE]...");
  }
  Arguments arguments = {.architecture = argv[1], .weights = argv[2], .input = argv[3], .output = argv[4]};
  int i = 5;
  arguments.gpu = GpuArgument(argc, argv, i);
  const std::string flag = i < argc ? argv[i] : "";
  arguments.paste = flag == "--paste";
  arguments.quantize = flag == "--quantize";
  if (arguments.paste || arguments.quantize) ++i;
  arguments.options = OptionArguments(argc, argv, i);
  return arguments;
}

void Run(const Arguments& arguments) {
  if (arguments.quantize) {
    QuantizeOnBatch(arguments.architecture, arguments.options, arguments.weights, ReadBatch(arguments.input),
                    arguments.output);
    return;
  }
  const auto model = Load(arguments.architecture, arguments.options, arguments.weights, {}, arguments.gpu);
  for (const std::string& note : model->description().notes) std::fprintf(stderr, "%s\n", note.c_str());
  WriteAnswers(model->Run(ReadBatch(arguments.input)), arguments.paste, arguments.output);
}

// Returns the exit code.
int RunOnce(int argc, char** argv) {
  try {
    Run(ParseArguments(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "saccade_run_model: %s\n", error.what());
    return 1;
  }
}

void RunLines(char* program) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::vector<std::string> words;
    std::istringstream text(line);
    for (std::string word; std::getline(text, word, '\t');) words.push_back(word);
    std::vector<char*> argv = {program};
    for (std::string& word : words) argv.push_back(word.data());
    std::printf("%d\n", RunOnce(static_cast<int>(argv.size()), argv.data()));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace saccade::models

int main(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != "--lines") return saccade::models::RunOnce(argc, argv);
  saccade::models::RunLines(argv[0]);
  return 0;
}
