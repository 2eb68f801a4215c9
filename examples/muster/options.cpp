#include "examples/muster/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "muster/core/base/error.h"

namespace program {

bool readOptions(example::CommandLine& line, const Call& call) {
  const auto command = std::ranges::find_if(
      commands(), [&](const Command& one) { return call.program == fmt::format("muster {}", one.name); });
  if (command != commands().end())
    line.usage(
        fmt::format("{}{}{} [options]", call.program, command->file.empty() ? "" : " ", command->file));
  std::vector<std::string> files;
  if (command != commands().end() && !command->file.empty()) line.arguments(files);
  std::vector<const char*> arguments{call.program.c_str()};
  for (const auto& option : call.options) arguments.push_back(option.c_str());
  try {
    const bool read = line.read(static_cast<int>(arguments.size()), arguments.data());
    for (auto& file : files)
      if (call.file.empty())
        call.file = std::move(file);
      else
        call.others.push_back(std::move(file));
    muster::require(call.others.empty() || command->name == "predict",
                    "unexpected argument \"{}\"; --help lists the options",
                    call.others.empty() ? "" : call.others.front());
    return read;
  } catch (const muster::InvalidArgument& error) {
    const std::string_view text = error.what();
    for (const auto& word : call.options)
      if (const auto option = word.substr(0, word.find('='));
          text.find(fmt::format("'{}'", word)) != text.npos)
        if (const auto instead = insteadOf(option); !instead.empty())
          throw muster::InvalidArgument(fmt::format("there is no option {}: use {}", option, instead));
    const bool run = call.file.ends_with(".json") && text.find("unrecognised option") != text.npos;
    if (!run) throw;
    throw muster::InvalidArgument(
        fmt::format("{}; fields of the run file are set as in --set training.workers=4", text));
  }
}

const std::string& fileOf(const Call& call, std::string_view what) {
  muster::require(!call.file.empty(), "{} needs an argument, {}; --help says more", call.program, what);
  return call.file;
}

}  // namespace program
