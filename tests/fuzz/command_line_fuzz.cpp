// Command lines of the programs.
#include "muster/core/base/error.h"
#include "tests/fuzz/command_line.h"
#include "tests/fuzz/program_options.h"
#include "tests/fuzz/programs.h"

namespace muster::fuzz {
namespace {

void run(ByteSpan bytes) {
  if (bytes.empty()) return;
  const auto arguments = argumentsIn(textOf(bytes.subspan(1)));
  std::vector<const char*> argv{"program"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  try {
    readLine(static_cast<char>(bytes[0]), static_cast<int>(argv.size()), argv.data());
  } catch (const InvalidArgument&) {
  } catch (const DeviceUnavailable&) {
  }
}

std::vector<Bytes> seeds() {
  return validLines();
}

/// Options of a program, and words of valid lines.
const std::vector<std::string>& wordsOf(char program) {
  static const auto all = [] {
    std::map<char, std::vector<std::string>> made;
    for (const char letter : kPrograms) {
      for (const auto& option : optionsOf(letter)) made[letter].push_back(option.argument);
      for (const auto& valid : validLines())
        for (auto& word : argumentsIn(textOf(ByteSpan(valid).subspan(1))))
          made[letter].push_back(std::move(word));
    }
    return made;
  }();
  const auto found = all.find(program);
  return found == all.end() ? all.at('m') : found->second;
}

/// Arguments left out, repeated, exchanged, and values at the edges.
void mutate(Bytes& bytes, Draw& draw) {
  if (bytes.empty()) bytes.push_back('m');
  auto arguments = argumentsIn(textOf(ByteSpan(bytes).subspan(1)));
  for (std::size_t times = 1 + draw.below(3); times-- > 0;) {
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(draw.below(arguments.size() + 1));
    const bool end = at == arguments.end();
    switch (draw.below(5)) {
      case 0:
        arguments.insert(at, draw.of(wordsOf(bytes[0])));
        break;
      case 1:
        if (!end) arguments.erase(at);
        break;
      case 2:
        if (!end) *at = draw.of(wordsOf(bytes[0]));
        break;
      case 3:
        if (!end) at->append(1, '=').append(draw.of(hostileTexts()));
        break;
      default:
        if (!end) *at = std::string(draw.of(hostileTexts()));
    }
  }
  const auto before = kPrograms.find(static_cast<char>(bytes[0])) % kPrograms.size();
  bytes = line(kPrograms[draw.oneIn(4) ? draw.below(kPrograms.size()) : before], arguments);
}

}  // namespace

const Target targets::command_line{"command_line", &run, &seeds, &mutate, &commandLineSweep};

}  // namespace muster::fuzz
