// Flags that several commands share. Each function adds its flags to a command's parser and stores their
// values in the options, which must outlive it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/commands/options.h"
#include "client/cli/output/console.h"

namespace saccade::client {

using Formats = std::vector<std::pair<std::string, Format>>;

// Returns a check that a flag's value is from `min` to `max`, and not NaN.
CLI::Validator NumberBetween(double min, double max);

// --url, --timeout, --max-message-bytes, --tls and --token.
void AddConnection(CLI::App* command, Connection& connection);

// --format and --json for commands that print one document, and --no-color.
void AddFormat(CLI::App* command, Format& format, Console& console);

// The same for commands that print one result per file. `more` are formats of one command only, listed after
// the common ones and described by `about_more`.
void AddAnswerFormat(CLI::App* command, Format& format, Console& console, const Formats& more = {},
                     const std::string& about_more = "");

// The positional argument `name` for the input files, --model and what else every request has.
void AddInputs(CLI::App* command, InputsCommand& options, const std::string& name,
               const std::string& description);

// --output; `output` describes it.
CLI::Option* AddOutput(CLI::App* command, InputsCommand& options, const std::string& output);

// AddInputs, AddOutput, and --concurrency and --retries.
void AddPictures(CLI::App* command, PicturesCommand& options, const std::string& name,
                 const std::string& output,
                 const std::string& description =
                     "JPEG, PNG, WebP, TIFF or BMP files, folders of them, or a quoted "
                     "pattern; - reads standard input");

void AddRegion(CLI::App* command, PicturesCommand& options);
void AddTiles(CLI::App* command, PicturesCommand& options);

// --explain and what belongs to it.
void AddExplain(CLI::App* command, PicturesCommand& options);

// --size; `what` names the map in the help text.
void AddOutputSize(CLI::App* command, std::string& size, const std::string& what);

// Flags that omit some of the results; `each` is the unit in which results are found.
void AddChoice(CLI::App* command, FindCommand& options, const std::string& each);

}  // namespace saccade::client
